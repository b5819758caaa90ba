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
    -- The time at which the shopper's data was erased; null if a return still needs it. A new snapshot
    -- brings the data back. The digest stays, so that the same snapshot does not.
    erased_at TIMESTAMPTZ
);

-- For searches in the orders of all merchants. Those of one merchant use the primary key.
CREATE INDEX orders_by_identifier ON orders (identifier, merchant);
-- For the newest orders of a merchant. A new snapshot rarely changes created_at, so the update of an order
-- rarely changes an index.
CREATE INDEX orders_by_creation ON orders (merchant, created_at, identifier);
CREATE INDEX orders_by_email ON orders (customer_email, merchant, identifier)
    WHERE customer_email IS NOT NULL;
-- Created last. While the table is empty all these indexes seem to cost the same, and PostgreSQL takes the newest
-- one; a plan with another one would read all orders of a merchant to find one.
ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY (merchant, identifier);

-- The lines of every order, to search for them. An index on the array in `orders` has no order: a page of a
-- search would read all orders that have the line.
CREATE TABLE order_lines (
    line_identifier TEXT COLLATE "C" NOT NULL,
    merchant TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C" NOT NULL,
    -- Serves searches in one merchant and in all merchants.
    CONSTRAINT order_lines_pkey PRIMARY KEY (line_identifier, merchant, order_identifier)
);

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

-- Erasures of shoppers' data, the record of who requested them. They contain no personal data.
CREATE TABLE erasures (
    -- Version 7, so that ids sort by time.
    id UUID PRIMARY KEY,
    merchant TEXT COLLATE "C" NOT NULL,
    -- SHA-256 of the e-mail address in lower case; null for an erasure by orders.
    email_sha256 TEXT COLLATE "C",
    -- Erase open returns too: all, or those that last changed before a time.
    force BOOLEAN NOT NULL,
    force_before TIMESTAMPTZ,
    requested_by TEXT NOT NULL,
    -- Running until all orders are erased here, then waiting for the other services.
    state TEXT NOT NULL,
    orders BIGINT NOT NULL,
    -- Orders and events in which data was replaced.
    erased_orders BIGINT NOT NULL DEFAULT 0,
    erased_events BIGINT NOT NULL DEFAULT 0,
    -- Events that were published for the other services.
    batches INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    CONSTRAINT erasures_state CHECK (state IN ('running', 'waiting', 'finished')),
    CONSTRAINT erasures_finished CHECK ((state = 'finished') = (finished_at IS NOT NULL))
);

CREATE INDEX erasures_by_merchant ON erasures (merchant, id);
CREATE INDEX erasures_running ON erasures (id) WHERE state = 'running';
CREATE INDEX erasures_by_email ON erasures (merchant, email_sha256) WHERE email_sha256 IS NOT NULL;

-- The orders of each erasure.
CREATE TABLE erasure_orders (
    erasure UUID NOT NULL CONSTRAINT erasure_orders_erasure_fkey REFERENCES erasures (id),
    order_identifier TEXT COLLATE "C" NOT NULL,
    is_done BOOLEAN NOT NULL DEFAULT FALSE,
    CONSTRAINT erasure_orders_pkey PRIMARY KEY (erasure, order_identifier)
);

CREATE INDEX erasure_orders_next ON erasure_orders (erasure, order_identifier) WHERE NOT is_done;

-- Confirmations of the other services, one for each batch.
CREATE TABLE erasure_confirmations (
    erasure UUID NOT NULL CONSTRAINT erasure_confirmations_erasure_fkey REFERENCES erasures (id),
    batch INTEGER NOT NULL,
    service TEXT NOT NULL,
    records BIGINT NOT NULL,
    events BIGINT NOT NULL,
    deliveries BIGINT NOT NULL,
    -- Open returns whose data was kept, as JSON.
    kept_returns JSONB NOT NULL,
    confirmed_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT erasure_confirmations_pkey PRIMARY KEY (erasure, batch, service)
);

-- The progress of the daily search for orders whose retention ended. An index on the time of the last change
-- would slow every update of an order, so the search reads all orders by their key.
CREATE TABLE retention_scan (
    is_only BOOLEAN PRIMARY KEY DEFAULT true,
    -- Orders up to this one are done.
    merchant TEXT COLLATE "C" NOT NULL DEFAULT '',
    identifier TEXT COLLATE "C" NOT NULL DEFAULT '',
    -- The end of the last whole search.
    finished_at TIMESTAMPTZ,
    CONSTRAINT retention_scan_is_only CHECK (is_only)
);

-- Rolls back a statement that wrote only some of its rows because another writer was first.
CREATE FUNCTION abort_concurrent_write() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'orders or refunds were changed by another writer'
        USING ERRCODE = 'serialization_failure';
END
$$;
