-- Whether the warehouse did not take the unit; it still may.
ALTER TABLE receipts ADD COLUMN rejected BOOLEAN NOT NULL DEFAULT FALSE;

UPDATE receipts SET rejected = TRUE WHERE message::JSON -> 'reject_reason' IS NOT NULL;
