-- A return as the rules know it, with what it is found by.
CREATE TABLE returns (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    -- In lower case; null when the shopper has none.
    customer_email TEXT COLLATE "C",
    document TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT returns_pkey PRIMARY KEY (merchant, rma_identifier)
);

CREATE INDEX returns_by_time ON returns (merchant, created_at, rma_identifier);
CREATE INDEX returns_by_status ON returns (merchant, status, created_at, rma_identifier);
CREATE INDEX returns_by_email ON returns (merchant, customer_email, created_at, rma_identifier)
    WHERE customer_email IS NOT NULL;

-- The units of every return. A unit that is held cannot be returned again; one whose return was
-- canceled is not held any more.
CREATE TABLE return_units (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C" NOT NULL,
    line_identifier TEXT COLLATE "C" NOT NULL,
    unit INTEGER NOT NULL,
    held BOOLEAN NOT NULL,
    -- Something was asked for in exchange for it, and its order can have no other exchange.
    exchanged BOOLEAN NOT NULL,
    tracking_number TEXT COLLATE "C",
    CONSTRAINT return_units_pkey
        PRIMARY KEY (merchant, rma_identifier, order_identifier, line_identifier, unit),
    CONSTRAINT return_units_return_fkey
        FOREIGN KEY (merchant, rma_identifier) REFERENCES returns (merchant, rma_identifier)
);

-- However many ask at once, a unit is in one return at most. Also finds the returns of an order.
CREATE UNIQUE INDEX return_units_held
    ON return_units (merchant, order_identifier, line_identifier, unit) WHERE held;
CREATE INDEX return_units_by_order ON return_units (merchant, order_identifier, rma_identifier);
CREATE INDEX return_units_by_tracking_number
    ON return_units (merchant, tracking_number, rma_identifier) WHERE tracking_number IS NOT NULL;
