SELECT endpoint.* FROM unnest($1, $2) AS given (merchant, kind), LATERAL (
    SELECT merchant, kind, window_size, slow_start_threshold, window_acks, failed_probes,
    not_before, last_success_at, last_success_status, last_failure_at, last_failure_status,
    last_failure_outcome, failing_since FROM delivery_endpoints AS row
    WHERE row.merchant = given.merchant AND row.kind = given.kind FOR UPDATE
) AS endpoint
