-- Facts about endpoints that their merchants are told: one row for each endpoint and event, so that no event of an
-- endpoint is told more often than once an hour.
CREATE TABLE notices (
    merchant TEXT COLLATE "C" NOT NULL,
    interface TEXT COLLATE "C" NOT NULL,
    event TEXT COLLATE "C" NOT NULL,
    -- The facts that the merchant has not been told yet, as JSON, and the time at which it is told. Null if there are
    -- none.
    facts TEXT,
    due_at TIMESTAMPTZ,
    -- The time of the last notice.
    told_at TIMESTAMPTZ,
    CONSTRAINT notices_facts CHECK ((facts IS NULL) = (due_at IS NULL))
);

CREATE INDEX notices_due ON notices (due_at) WHERE due_at IS NOT NULL;
-- Created last: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE notices ADD CONSTRAINT notices_pkey PRIMARY KEY (merchant, interface, event);
