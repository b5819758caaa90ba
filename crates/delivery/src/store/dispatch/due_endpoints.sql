-- Finds the endpoints of deliveries that became due after $1 and until $2, at most $3 deliveries, and the state of
-- these and of the given endpoints ($4 merchants, $5 kinds, $6 times before which none of their deliveries is due).
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
