-- Whether a unit of the return is due: it was exchanged and did not come back in time.
ALTER TABLE returns ADD COLUMN overdue BOOLEAN NOT NULL DEFAULT false;

CREATE INDEX returns_overdue ON returns (merchant, created_at, rma_identifier) WHERE overdue;
-- For lists of all merchants, with the same condition as those of other lists.
CREATE INDEX returns_of_all_overdue ON returns (created_at, rma_identifier)
    WHERE overdue AND merchant IS DISTINCT FROM '';

-- The guarantees of exchanged units by the month in which they started. Rows of guarantee_changes are added to the
-- totals by one task, so that concurrent changes never wait for the row of a total.
CREATE TABLE guarantee_totals (
    merchant TEXT COLLATE "C" NOT NULL,
    -- The first day of the month.
    month DATE NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    units BIGINT NOT NULL,
    -- Without a limit: a sum of one merchant that is too large must not stop the task.
    amount_cents NUMERIC NOT NULL,
    CONSTRAINT guarantee_totals_pkey PRIMARY KEY (merchant, month, currency, state)
);

CREATE TABLE guarantee_changes (
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    merchant TEXT COLLATE "C" NOT NULL,
    month DATE NOT NULL,
    currency TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    units BIGINT NOT NULL,
    amount_cents BIGINT NOT NULL,
    CONSTRAINT guarantee_changes_pkey PRIMARY KEY (position)
);

CREATE INDEX guarantee_changes_by_month ON guarantee_changes (merchant, month);
