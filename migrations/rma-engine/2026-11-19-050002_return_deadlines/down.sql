ALTER TABLE return_units DROP COLUMN expired;
DROP TABLE return_deadlines;
