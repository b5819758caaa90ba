-- A part of the statement of search.rs: the deliveries $1 with their unsettled rows and their last attempts. The
-- filters follow.
SELECT m.*,
CASE row.state WHEN 'ready' THEN row.next_attempt_at END AS next_attempt_at, row.attempts,
row.replay_number, last.*
FROM unnest($1) AS candidate (id) CROSS JOIN LATERAL (
    SELECT id, merchant, kind, ordering_key, sequence, event, created_at
    FROM delivery_messages WHERE id = candidate.id LIMIT 1
) AS m LEFT JOIN LATERAL (
    SELECT state, next_attempt_at, attempts, replay_number FROM deliveries
    WHERE id = m.id LIMIT 1
) AS row ON true LEFT JOIN LATERAL (
    SELECT number AS last_number, settled, outcome, status, detail, started_at
    FROM delivery_attempts WHERE delivery = m.id
    ORDER BY replay_number DESC, settled IS NOT NULL DESC, started_at DESC LIMIT 1
) AS last ON true
