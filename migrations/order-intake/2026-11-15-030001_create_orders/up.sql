-- Keys are compared byte by byte: cheaper, and the same on every machine.

-- The newest snapshot of every order, with the document it came in.
CREATE TABLE orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL,
    -- In lower case; null when the shopper has none.
    customer_email TEXT COLLATE "C",
    line_identifiers TEXT[] COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- Of the document: equal when nothing changed.
    digest BYTEA NOT NULL,
    -- JSON, checked before it came here, and kept to the letter.
    document TEXT NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (merchant, identifier)
);

CREATE INDEX orders_by_email ON orders (merchant, customer_email, identifier)
    WHERE customer_email IS NOT NULL;
-- Without a list of what is to be indexed later: whoever finds it full would index it all, and
-- everyone waits for half a second.
CREATE INDEX orders_by_line ON orders USING gin (line_identifiers) WITH (fastupdate = off);

-- Every refund ever seen: it never changes, and belongs to one order.
CREATE TABLE refunds (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    -- Of the order's identifier, which may be long and have thousands of refunds.
    order_digest BYTEA NOT NULL,
    digest BYTEA NOT NULL,
    first_seen_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT refunds_pkey PRIMARY KEY (merchant, identifier)
);

-- Snapshots that came after a newer one. Each is noted once, however often it comes.
CREATE TABLE stale_snapshots (
    merchant TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT stale_snapshots_pkey PRIMARY KEY (merchant, order_identifier, digest)
);

-- Rolls back a statement that wrote only some of its rows, because another writer was first.
CREATE FUNCTION abort_concurrent_write() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'orders or refunds were changed by another writer'
        USING ERRCODE = 'serialization_failure';
END
$$;
