-- Makes the settled deliveries $1 ready at $3, with a new replay number. Unless $2 (force), leaves out superseded
-- ones: of a kind with complete state ($4), with a newer message of their ordering key that is delivered or queued.
INSERT INTO deliveries
(id, merchant, kind, ordering_key, sequence, state, next_attempt_at, replay_number)
SELECT id, merchant, kind, ordering_key, sequence, 'ready', $3, 1 + last.replay_number
FROM (
    SELECT id, merchant, kind, ordering_key, sequence FROM delivery_messages
    WHERE id = ANY ($1) ORDER BY id FOR KEY SHARE
) AS m, LATERAL (
    SELECT replay_number FROM delivery_attempts WHERE delivery = m.id ORDER BY replay_number DESC LIMIT 1
) AS last
WHERE $2 OR m.kind <> ALL ($4) OR (
    SELECT true FROM delivery_messages AS newer, LATERAL (
        (SELECT FROM delivery_attempts AS attempt
        WHERE attempt.delivery = newer.id AND attempt.settled = 'delivered' LIMIT 1)
        UNION ALL
        (SELECT FROM deliveries AS row WHERE row.id = newer.id AND row.state = 'queued' LIMIT 1)
    ) AS sent
    WHERE newer.merchant = m.merchant AND newer.ordering_key = m.ordering_key
    AND newer.sequence > m.sequence LIMIT 1
) IS NOT TRUE
ON CONFLICT DO NOTHING RETURNING id
