-- What a warehouse finds is noted each time it finds it; only what snapshots repeat is noted once.
ALTER TABLE discrepancies ALTER COLUMN fingerprint DROP NOT NULL;
