-- Inserts or replaces the windows and the health of endpoints ($1 merchants, $2 kinds; $3 to $13: the other columns in
-- the order of the list).
INSERT INTO delivery_endpoints AS endpoint
(merchant, kind, window_size, slow_start_threshold, window_acks, failed_probes, not_before,
last_success_at, last_success_status, last_failure_at,
last_failure_status, last_failure_outcome, failing_since)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (merchant, kind) DO UPDATE SET window_size = excluded.window_size,
slow_start_threshold = excluded.slow_start_threshold, window_acks = excluded.window_acks,
failed_probes = excluded.failed_probes, not_before = excluded.not_before,
last_success_at = excluded.last_success_at,
last_success_status = excluded.last_success_status,
last_failure_at = excluded.last_failure_at,
last_failure_status = excluded.last_failure_status,
last_failure_outcome = excluded.last_failure_outcome,
failing_since = excluded.failing_since
