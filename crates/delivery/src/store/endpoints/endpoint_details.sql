-- Returns the details of endpoints ($1 merchants, $2 kinds) at the time $4. `waiting` counts ready and blocked
-- deliveries, up to $3. The columns of an endpoint without an attempt, or without a sample, are NULL.
SELECT given.merchant, given.kind, (
    SELECT count(*) FROM (
        (SELECT 1 FROM deliveries AS row WHERE row.merchant = given.merchant
        AND row.kind = given.kind AND row.state = 'ready'
        ORDER BY row.next_attempt_at LIMIT $3)
        UNION ALL
        SELECT 1 FROM deliveries AS row WHERE row.merchant = given.merchant
        AND row.kind = given.kind AND row.state = 'blocked'
        LIMIT $3
    ) AS waiting
) AS waiting, (
    SELECT count(*) FROM deliveries AS row
    WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'queued'
) AS in_flight, (
    SELECT next_attempt_at FROM deliveries AS row
    WHERE row.merchant = given.merchant AND row.kind = given.kind AND row.state = 'ready'
    AND row.next_attempt_at <= $4 ORDER BY next_attempt_at LIMIT 1
) AS oldest_due_at, endpoint.window_size, endpoint.last_success_at,
endpoint.last_success_status, endpoint.last_failure_at, endpoint.last_failure_status,
endpoint.last_failure_outcome, endpoint.failing_since,
sample.accepted_at AS sample_at, sample.status AS sample_status
FROM unnest($1, $2) AS given (merchant, kind)
LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind)
LEFT JOIN delivery_samples AS sample USING (merchant, kind)
