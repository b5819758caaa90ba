SELECT $2 AS merchant, given.kind, oldest.due_at
FROM unnest($3) AS given (kind), LATERAL (
    SELECT next_attempt_at AS due_at FROM deliveries AS row
    WHERE row.merchant = $2 AND row.kind = given.kind AND row.state = 'ready'
    AND row.next_attempt_at <= $1 ORDER BY row.next_attempt_at LIMIT 1
) AS oldest
