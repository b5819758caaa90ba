-- The times until which something must happen to returns. A row is deleted when it has happened, or when it no longer
-- needs to.
CREATE TABLE return_deadlines (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    -- The days from which due_at was computed. If the merchant's settings have others, it is computed again.
    days INTEGER NOT NULL,
    due_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX return_deadlines_by_time ON return_deadlines (due_at);
CREATE INDEX return_deadlines_by_days ON return_deadlines (merchant, kind, days);
-- Created last, as that of returns: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE return_deadlines
    ADD CONSTRAINT return_deadlines_pkey PRIMARY KEY (rma_identifier, merchant, kind);

-- Canceled units that a late scan of their parcel makes part of the return again.
ALTER TABLE return_units ADD COLUMN expired BOOLEAN NOT NULL DEFAULT false;

-- Due at once with days that no settings have, so that the service computes the time of each return.
INSERT INTO return_deadlines (merchant, rma_identifier, kind, started_at, days, due_at)
SELECT merchant, rma_identifier, 'send', created_at, 0, now() FROM returns WHERE status = 'CREATED';
