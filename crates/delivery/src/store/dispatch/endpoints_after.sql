-- Finds up to $3 endpoints with ready deliveries after the endpoint $1 (merchant), $2 (kind). One step of the
-- recursion skips to the next endpoint in the index.
WITH RECURSIVE endpoints (merchant, kind, first_at, number) AS (
    (SELECT merchant, kind, next_attempt_at, 1::bigint FROM deliveries
    WHERE state = 'ready' AND (merchant, kind) > ($1, $2)
    ORDER BY merchant, kind, next_attempt_at LIMIT 1)
    UNION ALL
    SELECT next.*, endpoints.number + 1 FROM endpoints, LATERAL (
        SELECT merchant, kind, next_attempt_at FROM deliveries
        WHERE state = 'ready' AND (merchant, kind) > (endpoints.merchant, endpoints.kind)
        ORDER BY merchant, kind, next_attempt_at LIMIT 1
    ) AS next
    WHERE endpoints.number < $3
)
SELECT merchant, kind, first_at FROM endpoints
