-- Finds up to $3 endpoints of merchant $1 (or of all) that fail, and as many with less than 99 % success since $2,
-- among $4 counts.
SELECT merchant, kind FROM (
    (SELECT merchant, kind, failing_since FROM delivery_endpoints
    WHERE failing_since IS NOT NULL AND ($1::text IS NULL OR merchant = $1)
    ORDER BY failing_since LIMIT $3)
    UNION ALL
    (SELECT merchant, kind, NULL FROM (
        SELECT * FROM delivery_latencies
        WHERE hour >= $2 AND ($1::text IS NULL OR merchant = $1) LIMIT $4
    ) AS recent GROUP BY merchant, kind
    HAVING sum(delivered) < 0.99 * sum(attempts)
    ORDER BY sum(attempts) - sum(delivered) DESC LIMIT $3)
) AS bad GROUP BY merchant, kind ORDER BY min(failing_since), merchant, kind
