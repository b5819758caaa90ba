-- Keys are compared byte by byte: cheaper, and the same on every machine.

-- The newest snapshot of every order, and the ledger of its units. The snapshot may change at any
-- time; a unit in the ledger keeps its number and its money for good.
CREATE TABLE orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- Of the event that told of it: of two snapshots with the same updated_at the later one counts.
    sequence BIGINT NOT NULL,
    -- JSON that nothing here is searched in.
    document TEXT NOT NULL,
    ledger TEXT NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (merchant, identifier)
);

-- Which orders are exchange orders, and the order each was placed against. The original may itself
-- be an exchange order: the chain is followed here.
CREATE TABLE exchange_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    original_order_identifier TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    placed_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT exchange_orders_pkey PRIMARY KEY (merchant, identifier)
);
