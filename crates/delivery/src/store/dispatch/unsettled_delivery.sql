-- Finds the unsettled ones of the deliveries $1, with the state of their endpoints. $2: the initial window.
SELECT row.id, row.state, row.next_attempt_at,
CASE WHEN endpoint.failed_probes > 0 THEN endpoint.not_before END AS not_before,
COALESCE(endpoint.window_size, $2) <= (
    SELECT count(*) FROM deliveries AS queued
    WHERE queued.merchant = row.merchant AND queued.kind = row.kind
    AND queued.state = 'queued'
) AS is_window_full
FROM deliveries AS row LEFT JOIN delivery_endpoints AS endpoint USING (merchant, kind)
WHERE row.id = ANY ($1)
