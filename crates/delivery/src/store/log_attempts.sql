-- Logs requests and counts them for the reports.
-- Each request: $1 merchant, $2 kind, $3 delivery, $4 replay number, $5 attempt number, $6 start, $7 latency in ms,
-- $8 bucket of the latency, $9 outcome, $10 status, $11 detail, $12 response body, $13 final state or NULL,
-- $14 request headers, $15 response headers. $16: the text that replaces the response to an erased message.
WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    AS given (merchant, kind, delivery, replay_number, number, started_at, latency_ms, bucket,
    outcome, status, detail, response_body, settled, request_headers, response_headers)
), kept AS MATERIALIZED (
    SELECT message.id FROM given, LATERAL (
        SELECT own.id FROM delivery_messages AS own
        WHERE own.id = given.delivery AND (NOT own.is_erased) IS TRUE
        LIMIT 1 FOR SHARE SKIP LOCKED
    ) AS message
    WHERE given.response_body <> '' OR given.response_headers <> ''
), logged AS (
    INSERT INTO delivery_attempts (merchant, delivery, replay_number, number, started_at,
    latency_ms, outcome, status, detail, response_body, settled, request_headers,
    response_headers)
    SELECT merchant, delivery, replay_number, number, started_at, latency_ms, outcome, status,
    detail,
    CASE WHEN response_body = '' OR delivery IN (SELECT id FROM kept) THEN response_body ELSE $16 END,
    settled, request_headers,
    CASE WHEN delivery IN (SELECT id FROM kept) THEN response_headers ELSE '' END FROM given
), counted AS (
    INSERT INTO delivery_counts AS stored (hour, merchant, kind, outcome, status, attempts)
    SELECT date_trunc('hour', started_at, 'UTC'), merchant, kind, outcome,
    COALESCE(status, 0), count(*) FROM given GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (hour, merchant, kind, outcome, status)
    DO UPDATE SET attempts = stored.attempts + excluded.attempts
), totals AS (
    INSERT INTO delivery_totals AS stored (hour, kind, bucket, slot, attempts, delivered)
    SELECT date_trunc('hour', started_at, 'UTC'), kind, bucket, pg_backend_pid() % 8, count(*),
    count(*) FILTER (WHERE outcome = 'delivered') FROM given GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (hour, kind, bucket, slot)
    DO UPDATE SET attempts = stored.attempts + excluded.attempts,
    delivered = stored.delivered + excluded.delivered
)
INSERT INTO delivery_latencies AS stored (merchant, kind, hour, bucket, attempts, delivered)
SELECT merchant, kind, date_trunc('hour', started_at, 'UTC'), bucket, count(*),
count(*) FILTER (WHERE outcome = 'delivered') FROM given GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
ON CONFLICT (merchant, kind, hour, bucket)
DO UPDATE SET attempts = stored.attempts + excluded.attempts,
delivered = stored.delivered + excluded.delivered
