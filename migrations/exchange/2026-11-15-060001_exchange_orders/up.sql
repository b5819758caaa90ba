-- Keys are compared byte by byte: cheaper, and the same on every machine.

-- Every confirmed return with something to exchange: one row for each order it speaks of.
CREATE TABLE confirmations (
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    merchant TEXT COLLATE "C" NOT NULL,
    original_order_id TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL,
    -- The event as it was heard, in JSON.
    document TEXT NOT NULL,
    -- The units whose variant was gone, in JSON.
    out_of_stock TEXT NOT NULL DEFAULT '[]',
    received_at TIMESTAMPTZ NOT NULL,
    -- Until then somebody is at work on it.
    claimed_until TIMESTAMPTZ NOT NULL,
    decided_at TIMESTAMPTZ,
    -- Of the request that confirmed the return.
    traceparent TEXT,
    CONSTRAINT confirmations_pkey PRIMARY KEY (position),
    CONSTRAINT confirmations_once UNIQUE (merchant, original_order_id, rma_identifier),
    CONSTRAINT confirmations_state
        CHECK (state IN ('waiting', 'ordered', 'already_exchanged', 'out_of_stock', 'unreadable')),
    CONSTRAINT confirmations_decided CHECK ((state = 'waiting') = (decided_at IS NULL))
);

CREATE INDEX confirmations_next ON confirmations (merchant, position) WHERE state = 'waiting';
CREATE INDEX confirmations_before ON confirmations (merchant, original_order_id, position)
    WHERE state = 'waiting';
CREATE INDEX confirmations_by_rma ON confirmations (merchant, rma_identifier);
CREATE INDEX confirmations_by_merchant ON confirmations (merchant, position);
CREATE INDEX confirmations_by_state ON confirmations (merchant, state, position);

-- The exchange orders: one for each original order, whoever asks and however often.
CREATE TABLE exchange_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    original_order_id TEXT COLLATE "C" NOT NULL,
    confirmation BIGINT NOT NULL,
    id UUID NOT NULL,
    transaction_id UUID NOT NULL,
    -- The message to the merchant, which knows it as webhook-id.
    delivery UUID NOT NULL,
    state TEXT NOT NULL,
    -- The exchanged units, in JSON.
    units TEXT NOT NULL,
    -- What the merchant was sent, to the letter.
    message TEXT NOT NULL,
    -- Whether stock was asked for again, and if that did not work, why.
    stock TEXT NOT NULL,
    stock_detail TEXT,
    ordered_at TIMESTAMPTZ NOT NULL,
    -- Of the merchant's last word.
    settled_at TIMESTAMPTZ,
    -- Known once the merchant has taken the order.
    exchange_order_identifier TEXT COLLATE "C",
    -- What the merchant computed, where it said so.
    total_amount_cents BIGINT,
    tax_amount_cents BIGINT,
    shipping_amount_cents BIGINT,
    CONSTRAINT exchange_orders_one_per_original_order PRIMARY KEY (merchant, original_order_id),
    CONSTRAINT exchange_orders_confirmation UNIQUE (confirmation),
    CONSTRAINT exchange_orders_delivery UNIQUE (delivery),
    CONSTRAINT exchange_orders_confirmed
        FOREIGN KEY (confirmation) REFERENCES confirmations (position),
    CONSTRAINT exchange_orders_state CHECK (state IN ('sending', 'placed', 'undeliverable')),
    CONSTRAINT exchange_orders_stock CHECK (stock IN ('checked', 'unchecked', 'not_needed')),
    CONSTRAINT exchange_orders_named
        CHECK ((state = 'placed') = (exchange_order_identifier IS NOT NULL))
);

CREATE INDEX exchange_orders_by_name ON exchange_orders (merchant, exchange_order_identifier)
    WHERE exchange_order_identifier IS NOT NULL;
CREATE INDEX exchange_orders_by_state ON exchange_orders (merchant, state, confirmation);
-- For operators, who look at every merchant's.
CREATE INDEX exchange_orders_of_all ON exchange_orders (state, confirmation);
