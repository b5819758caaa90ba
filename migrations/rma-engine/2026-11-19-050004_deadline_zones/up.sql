-- The time zone in which due_at was computed. If the merchant's settings have another, it is computed again: so are the
-- rows from before this version, whose zone no settings have.
ALTER TABLE return_deadlines ADD COLUMN zone TEXT COLLATE "C" NOT NULL DEFAULT '';

DROP INDEX return_deadlines_by_days;
CREATE INDEX return_deadlines_by_days ON return_deadlines (merchant, kind, days, zone);
-- Created last again: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE return_deadlines DROP CONSTRAINT return_deadlines_pkey;
ALTER TABLE return_deadlines
    ADD CONSTRAINT return_deadlines_pkey PRIMARY KEY (rma_identifier, merchant, kind);
