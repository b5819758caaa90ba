-- Finds dead letters ($1 delivery, $2 replay number) that are erased, expired (ids below $3), replayed since, or
-- delivered after all.
SELECT letter.id, letter.replay_number
FROM unnest($1, $2) AS letter (id, replay_number)
LEFT JOIN LATERAL (
    SELECT id, is_erased FROM delivery_messages WHERE id = letter.id LIMIT 1
) AS message ON true LEFT JOIN LATERAL (
    SELECT replay_number FROM deliveries WHERE id = letter.id LIMIT 1
) AS row ON true LEFT JOIN LATERAL (
    SELECT true AS is_newer FROM delivery_attempts AS attempt
    WHERE attempt.delivery = letter.id AND (attempt.replay_number > letter.replay_number
        OR attempt.replay_number = letter.replay_number AND attempt.settled = 'delivered') LIMIT 1
) AS attempt ON true
WHERE message.is_erased
OR message.id IS NULL AND letter.id < $3
OR row.replay_number > letter.replay_number
OR attempt.is_newer
