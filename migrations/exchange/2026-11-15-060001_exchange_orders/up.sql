-- Identifiers use COLLATE "C": bytewise comparison is faster and the same on every machine. Indexes
-- that begin with an identifier serve searches in one merchant and in all merchants.

-- Confirmed returns that request an exchange, one row for each of their orders.
CREATE TABLE confirmations (
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    merchant TEXT COLLATE "C" NOT NULL,
    original_order_id TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL,
    -- The event data as JSON.
    document TEXT NOT NULL,
    -- The units that cannot be exchanged, with reasons, as JSON.
    failed TEXT NOT NULL DEFAULT '[]',
    received_at TIMESTAMPTZ NOT NULL,
    -- End of the lease of the replica that works on this row.
    leased_until TIMESTAMPTZ NOT NULL,
    decided_at TIMESTAMPTZ,
    -- Trace context of the request that confirmed the return.
    traceparent TEXT,
    -- The shopper's data was erased.
    erased BOOLEAN NOT NULL DEFAULT FALSE,
    CONSTRAINT confirmations_pkey PRIMARY KEY (position),
    CONSTRAINT confirmations_once UNIQUE (original_order_id, merchant, rma_identifier),
    CONSTRAINT confirmations_state
        CHECK (state IN
            ('waiting', 'ordered', 'already_exchanged', 'not_exchangeable', 'unreadable')),
    CONSTRAINT confirmations_decided CHECK ((state = 'waiting') = (decided_at IS NULL))
);

CREATE INDEX confirmations_next ON confirmations (merchant, position) WHERE state = 'waiting';
CREATE INDEX confirmations_before ON confirmations (merchant, original_order_id, position)
    WHERE state = 'waiting';
CREATE INDEX confirmations_by_rma ON confirmations (rma_identifier, merchant);
CREATE INDEX confirmations_by_merchant ON confirmations (merchant, position);
CREATE INDEX confirmations_by_state ON confirmations (merchant, state, position);
-- For lists of all merchants. Only their queries repeat the condition, which is always true: otherwise PostgreSQL
-- might look for the rows of one merchant among those of all.
CREATE INDEX confirmations_of_all ON confirmations (state, position) WHERE merchant IS DISTINCT FROM '';

-- Exchange orders. The primary key allows one for each original order.
CREATE TABLE exchange_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    original_order_id TEXT COLLATE "C" NOT NULL,
    confirmation BIGINT NOT NULL,
    id UUID NOT NULL,
    transaction_id UUID NOT NULL,
    -- The delivery to the merchant, sent as webhook-id.
    delivery UUID NOT NULL,
    state TEXT NOT NULL,
    -- The exchanged units with their prices, as JSON.
    items TEXT NOT NULL,
    -- The exact message that was sent to the merchant.
    message TEXT NOT NULL,
    -- Results of the stock and price checks, and the reason if a lookup failed.
    stock_check TEXT NOT NULL,
    price_check TEXT NOT NULL,
    check_detail TEXT,
    ordered_at TIMESTAMPTZ NOT NULL,
    -- Time at which the order was last placed, abandoned or given up as undeliverable.
    settled_at TIMESTAMPTZ,
    -- Set when the merchant has accepted the order. Ours, if the merchant's belongs to another order.
    exchange_order_identifier TEXT COLLATE "C",
    -- Amounts from the merchant's response.
    total_amount_cents BIGINT,
    tax_amount_cents BIGINT,
    shipping_amount_cents BIGINT,
    -- The operator who abandoned the order, and why.
    abandoned_by TEXT,
    abandon_note TEXT,
    CONSTRAINT exchange_orders_one_per_original_order PRIMARY KEY (merchant, original_order_id),
    CONSTRAINT exchange_orders_confirmation UNIQUE (confirmation),
    CONSTRAINT exchange_orders_delivery UNIQUE (delivery),
    CONSTRAINT exchange_orders_confirmed
        FOREIGN KEY (confirmation) REFERENCES confirmations (position),
    CONSTRAINT exchange_orders_state
        CHECK (state IN ('sending', 'placed', 'undeliverable', 'already_exists', 'abandoned')),
    CONSTRAINT exchange_orders_stock_check
        CHECK (stock_check IN ('checked', 'unchecked', 'not_needed')),
    CONSTRAINT exchange_orders_price_check
        CHECK (price_check IN ('checked', 'unchecked', 'not_needed')),
    CONSTRAINT exchange_orders_named
        CHECK ((state = 'placed') = (exchange_order_identifier IS NOT NULL)),
    CONSTRAINT exchange_orders_abandoned
        CHECK ((state = 'abandoned') = (abandoned_by IS NOT NULL)
            AND (state = 'abandoned') = (abandon_note IS NOT NULL))
);

-- A merchant's identifier belongs to one exchange order.
CREATE UNIQUE INDEX exchange_orders_by_name
    ON exchange_orders (exchange_order_identifier, merchant)
    WHERE exchange_order_identifier IS NOT NULL;
CREATE INDEX exchange_orders_by_state ON exchange_orders (merchant, state, confirmation);
CREATE INDEX exchange_orders_of_all ON exchange_orders (state, confirmation)
    WHERE merchant IS DISTINCT FROM '';

-- Returns whose shopper was erased. A confirmation that arrives later is erased before it is stored.
CREATE TABLE erased_returns (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    -- SHA-256 of the giftee's e-mail address if only the giftee was erased; empty if all data was erased.
    giftee_email_sha256 TEXT COLLATE "C" NOT NULL,
    CONSTRAINT erased_returns_pkey PRIMARY KEY (merchant, rma_identifier, giftee_email_sha256)
);
