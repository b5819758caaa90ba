-- Returns the latency counts of endpoints ($1 merchants, $2 kinds) in the newest hour of each that has any, and in the
-- hour before.
SELECT given.merchant, given.kind,
recent.hour, recent.bucket, recent.attempts, recent.delivered
FROM unnest($1, $2) AS given (merchant, kind), LATERAL (
    SELECT hour FROM delivery_latencies AS newest
    WHERE newest.merchant = given.merchant AND newest.kind = given.kind
    ORDER BY hour DESC LIMIT 1
) AS newest, LATERAL (
    SELECT * FROM delivery_latencies AS row
    WHERE row.merchant = given.merchant AND row.kind = given.kind
    AND row.hour >= newest.hour - INTERVAL '1 hour'
) AS recent
