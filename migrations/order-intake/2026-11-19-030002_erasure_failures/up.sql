-- Batches of a running erasure that failed since the last one that was erased, and the time of the next attempt. A
-- restart does not shorten the wait of an erasure that fails again and again.
ALTER TABLE erasures
    ADD COLUMN failures INTEGER NOT NULL DEFAULT 0,
    -- Null if the last batch was erased.
    ADD COLUMN next_attempt_at TIMESTAMPTZ;
