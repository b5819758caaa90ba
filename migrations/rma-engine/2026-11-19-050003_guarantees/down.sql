DROP TABLE guarantee_changes;
DROP TABLE guarantee_totals;
DROP INDEX returns_of_all_overdue;
DROP INDEX returns_overdue;
ALTER TABLE returns DROP COLUMN overdue;
DELETE FROM return_deadlines WHERE kind = 'exchange';
