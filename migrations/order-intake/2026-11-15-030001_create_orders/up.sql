-- Keys use the "C" collation: byte order is cheaper to compare and the same on every machine.

-- The newest snapshot of every order, with the JSON document it was published in.
CREATE TABLE orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL,
    -- In lower case; null when the shopper has no e-mail address.
    customer_email TEXT COLLATE "C",
    line_identifiers TEXT[] COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- Digest of the document's content; equal digests mean that nothing changed.
    digest BYTEA NOT NULL,
    -- Validated JSON, stored as TEXT to keep it exactly as it was published.
    document TEXT NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (merchant, identifier)
);

-- For searches in the orders of all merchants. Those of one merchant use the primary key.
CREATE INDEX orders_by_identifier ON orders (identifier, merchant);
-- For the newest orders of a merchant. A new snapshot rarely changes created_at, so the update of an order
-- rarely changes an index.
CREATE INDEX orders_by_creation ON orders (merchant, created_at, identifier);
CREATE INDEX orders_by_email ON orders (customer_email, merchant, identifier)
    WHERE customer_email IS NOT NULL;
-- fastupdate is off: the insert that fills the pending list would flush all of it, and block other
-- writers for half a second.
CREATE INDEX orders_by_line ON orders USING gin (line_identifiers) WITH (fastupdate = off);

-- Every refund ever published. A refund belongs to one order, and only its rma_identifier can change.
CREATE TABLE refunds (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    -- Digest of the order's identifier, which may be long and have thousands of refunds.
    order_digest BYTEA NOT NULL,
    -- Digest of the refund without its rma_identifier.
    digest BYTEA NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT refunds_pkey PRIMARY KEY (merchant, identifier)
);

-- Every line of every refund. A line identifier belongs to one refund of the merchant.
CREATE TABLE refund_lines (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    -- Digest of the refund's identifier, which may be long and have thousands of lines.
    refund_digest BYTEA NOT NULL,
    CONSTRAINT refund_lines_pkey PRIMARY KEY (merchant, identifier)
);

-- Numbers of orders that merchants sent, by hour. A task adds them every second; hours are deleted after two
-- days.
CREATE TABLE order_counts (
    merchant TEXT COLLATE "C" NOT NULL,
    -- The start of the hour.
    hour TIMESTAMPTZ NOT NULL,
    -- Orders of accepted messages.
    received BIGINT NOT NULL,
    -- Received orders that were new or changed.
    changed BIGINT NOT NULL,
    -- Orders of rejected messages.
    rejected BIGINT NOT NULL,
    CONSTRAINT order_counts_pkey PRIMARY KEY (merchant, hour)
);

-- The times of all orders that a merchant sent.
CREATE TABLE order_times (
    merchant TEXT COLLATE "C" NOT NULL,
    oldest_created_at TIMESTAMPTZ NOT NULL,
    newest_created_at TIMESTAMPTZ NOT NULL,
    first_received_at TIMESTAMPTZ NOT NULL,
    last_received_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT order_times_pkey PRIMARY KEY (merchant)
);

-- The last rejected orders of each merchant.
CREATE TABLE rejected_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    -- JSON: time, identifier and errors.
    document TEXT NOT NULL,
    CONSTRAINT rejected_orders_pkey PRIMARY KEY (merchant, id)
);

-- Orders that an operator reset, with the operator. Rows are never changed.
CREATE TABLE order_resets (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    actor TEXT NOT NULL,
    previous_updated_at TIMESTAMPTZ NOT NULL,
    reset_at TIMESTAMPTZ NOT NULL
);

-- Rolls back a statement that wrote only some of its rows because another writer was first.
CREATE FUNCTION abort_concurrent_write() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'orders or refunds were changed by another writer'
        USING ERRCODE = 'serialization_failure';
END
$$;
