-- Notes that the failures of endpoints ($1 merchants, $2 kinds) are reported, if they began until $3. Rows that are
-- locked are left for the next time.
WITH unreported AS (
    SELECT endpoint.* FROM unnest($1, $2) AS given (merchant, kind), LATERAL (
        SELECT merchant, kind FROM delivery_endpoints AS row
        WHERE row.merchant = given.merchant AND row.kind = given.kind
        AND row.failing_since <= $3 AND row.reported_failing_since IS NULL
        FOR UPDATE SKIP LOCKED
    ) AS endpoint
)
UPDATE delivery_endpoints AS endpoint SET reported_failing_since = endpoint.failing_since
FROM unreported WHERE endpoint.merchant = unreported.merchant AND endpoint.kind = unreported.kind
RETURNING endpoint.merchant, endpoint.kind, endpoint.failing_since, NULL::timestamptz AS recovered_at,
endpoint.last_failure_status
