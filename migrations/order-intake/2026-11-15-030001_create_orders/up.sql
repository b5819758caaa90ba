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

CREATE INDEX orders_by_email ON orders (merchant, customer_email, identifier)
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

-- Rolls back a statement that wrote only some of its rows because another writer was first.
CREATE FUNCTION abort_concurrent_write() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'orders or refunds were changed by another writer'
        USING ERRCODE = 'serialization_failure';
END
$$;
