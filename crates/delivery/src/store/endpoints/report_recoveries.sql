-- Notes that the recoveries of up to $2 endpoints are reported. $1: the time of a success that is not known. Rows that
-- are locked are left for the next time.
WITH recovered AS (
    SELECT merchant, kind, reported_failing_since FROM delivery_endpoints
    WHERE failing_since IS NULL AND reported_failing_since IS NOT NULL
    ORDER BY reported_failing_since LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE delivery_endpoints AS endpoint SET reported_failing_since = NULL
FROM recovered WHERE endpoint.merchant = recovered.merchant AND endpoint.kind = recovered.kind
RETURNING endpoint.merchant, endpoint.kind, recovered.reported_failing_since AS failing_since,
COALESCE(endpoint.last_success_at, $1) AS recovered_at, endpoint.last_failure_status
