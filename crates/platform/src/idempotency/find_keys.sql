-- Finds idempotency keys: $1 merchants, $2 operations, $3 keys. `place` is the number of the key, from 1.
SELECT requested.place, stored.request_digest, stored.response
FROM unnest((SELECT $1), $2, $3) WITH ORDINALITY
    AS requested (merchant, operation, key, place), LATERAL (
    SELECT request_digest, response FROM idempotency_keys AS own
    WHERE own.merchant = requested.merchant AND own.operation = requested.operation
        AND own.key = requested.key OFFSET 0
) AS stored
