SELECT id FROM (
    (SELECT id FROM deliveries WHERE state = 'ready' AND merchant = $2
    ORDER BY merchant, kind LIMIT $1)
    UNION ALL
    (SELECT id FROM deliveries WHERE state = 'blocked' AND merchant = $2
    ORDER BY merchant, kind LIMIT $1)
    UNION ALL
    (SELECT id FROM deliveries WHERE state = 'queued' AND merchant = $2
    ORDER BY merchant, kind LIMIT $1)
) AS found LIMIT $1
