-- Inserts idempotency keys: $1 merchants, $2 operations, $3 keys, $4 digests of the requests, $5 responses.
-- $6: the time.
INSERT INTO idempotency_keys
  (merchant, operation, key, request_digest, response, completed_at)
SELECT merchant, operation, key, request_digest, response, $6
FROM unnest($1, $2, $3, $4, $5) AS new (merchant, operation, key, request_digest, response)
ON CONFLICT ON CONSTRAINT idempotency_keys_pkey DO NOTHING
