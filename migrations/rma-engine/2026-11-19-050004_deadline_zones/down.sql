DROP INDEX return_deadlines_by_days;
ALTER TABLE return_deadlines DROP COLUMN zone;
CREATE INDEX return_deadlines_by_days ON return_deadlines (merchant, kind, days);
ALTER TABLE return_deadlines DROP CONSTRAINT return_deadlines_pkey;
ALTER TABLE return_deadlines
    ADD CONSTRAINT return_deadlines_pkey PRIMARY KEY (rma_identifier, merchant, kind);
