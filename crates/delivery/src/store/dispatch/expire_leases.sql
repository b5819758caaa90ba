-- Makes the queued deliveries $1 ready whose lease expired, due at $2. Leaves out rows that are locked.
UPDATE deliveries
SET state = 'ready', leased_until = NULL, next_attempt_at = $2, releases = releases + 1
WHERE id = ANY (ARRAY (
    SELECT id FROM deliveries
    WHERE id = ANY ($1) AND (state = 'queued' AND leased_until <= $2) IS TRUE
    FOR NO KEY UPDATE SKIP LOCKED
)) AND (state = 'queued' AND leased_until <= $2) IS TRUE
