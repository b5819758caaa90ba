SELECT due.*, endpoint.window_size, endpoint.failed_probes,
endpoint.not_before FROM (
    SELECT merchant, kind, min(next_attempt_at) AS first_at, sum(read)::bigint AS read FROM (
        (SELECT merchant, kind, next_attempt_at, 1 AS read FROM deliveries
        WHERE state = 'ready' AND next_attempt_at AT TIME ZONE 'UTC' > $1 AT TIME ZONE 'UTC'
        AND next_attempt_at AT TIME ZONE 'UTC' <= $2 AT TIME ZONE 'UTC'
        ORDER BY next_attempt_at AT TIME ZONE 'UTC' LIMIT $3)
        UNION ALL
        SELECT *, 0 FROM unnest($4, $5, $6) AS given (merchant, kind, next_attempt_at)
    ) AS due GROUP BY merchant, kind
) AS due LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind)
ORDER BY first_at
