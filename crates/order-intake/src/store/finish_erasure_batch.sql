-- Counts a batch of the erasure $1, with $2 orders and $3 events in which data was replaced. After the last batch the
-- erasure waits for the confirmations of the other services.
UPDATE erasures SET batches = batches + 1, erased_orders = erased_orders + $2,
    erased_events = erased_events + $3, failures = 0, next_attempt_at = NULL,
    state = CASE WHEN EXISTS (
        SELECT FROM erasure_orders WHERE erasure = $1 AND NOT is_done
    ) THEN 'running' ELSE 'waiting' END
WHERE id = $1
