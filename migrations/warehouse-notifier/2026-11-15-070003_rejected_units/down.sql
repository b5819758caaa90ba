ALTER TABLE receipts DROP COLUMN rejected;
