-- Makes the first delivery of each ordering key ready if it is blocked: $1 merchants, $2 keys.
-- $3: the earliest time at which it is due.
WITH next AS (
    SELECT first.id FROM unnest($1, $2) AS given (merchant, ordering_key), LATERAL (
        SELECT id, state FROM deliveries AS row
        WHERE row.merchant = given.merchant AND row.ordering_key = given.ordering_key
        ORDER BY row.sequence LIMIT 1
    ) AS first
    WHERE first.state = 'blocked'
)
UPDATE deliveries SET state = 'ready', next_attempt_at = GREATEST(next_attempt_at, $3)
WHERE id = ANY (ARRAY (SELECT id FROM next)) AND (state = 'blocked') IS TRUE
