-- Notes that the recoveries of endpoints ($1 merchants, $2 kinds) are reported. $3: the time of a success that is not
-- known. Rows that are locked are left for the next time.
WITH recovered AS (
    SELECT endpoint.* FROM unnest($1, $2) AS given (merchant, kind), LATERAL (
        SELECT merchant, kind, reported_failing_since FROM delivery_endpoints AS row
        WHERE row.merchant = given.merchant AND row.kind = given.kind
        AND row.failing_since IS NULL AND row.reported_failing_since IS NOT NULL
        FOR UPDATE SKIP LOCKED
    ) AS endpoint
)
UPDATE delivery_endpoints AS endpoint SET reported_failing_since = NULL
FROM recovered WHERE endpoint.merchant = recovered.merchant AND endpoint.kind = recovered.kind
RETURNING endpoint.merchant, endpoint.kind, recovered.reported_failing_since AS failing_since,
COALESCE(endpoint.last_success_at, $3) AS recovered_at, endpoint.last_failure_status
