ALTER TABLE erasures DROP COLUMN failures, DROP COLUMN next_attempt_at;
