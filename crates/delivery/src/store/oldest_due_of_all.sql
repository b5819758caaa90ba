-- Finds the oldest delivery of each of the first 2,000 endpoints, if it is due at $1, and the 1,000 oldest due ones of
-- all. One step of the recursion skips to the next endpoint in the index.
WITH RECURSIVE endpoints (merchant, kind, due_at, number) AS (
    (SELECT merchant, kind, next_attempt_at, 1 FROM deliveries WHERE state = 'ready'
    ORDER BY merchant, kind, next_attempt_at LIMIT 1)
    UNION ALL
    SELECT next.*, endpoints.number + 1 FROM endpoints, LATERAL (
        SELECT row.merchant, row.kind, row.next_attempt_at FROM deliveries AS row
        WHERE row.state = 'ready'
        AND (row.merchant, row.kind) > (endpoints.merchant, endpoints.kind)
        ORDER BY row.merchant, row.kind, row.next_attempt_at LIMIT 1
    ) AS next WHERE endpoints.number < 2000
)
SELECT merchant, kind, due_at FROM endpoints WHERE due_at <= $1
UNION ALL
(SELECT merchant, kind, next_attempt_at FROM deliveries
WHERE state = 'ready' AND next_attempt_at AT TIME ZONE 'UTC' <= $1 AT TIME ZONE 'UTC'
ORDER BY next_attempt_at AT TIME ZONE 'UTC' LIMIT 1000)
