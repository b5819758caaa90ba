-- Keys use the C collation: comparisons are cheaper and the same on every machine.

-- The newest snapshot of every order and its shipped units. Snapshots may change at any time;
-- a unit keeps its number and amounts.
CREATE TABLE orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- Sequence number of the event: decides between snapshots with the same updated_at.
    sequence BIGINT NOT NULL,
    -- JSON in TEXT, because queries do not search in it.
    document TEXT NOT NULL,
    shipped_units TEXT NOT NULL,
    -- The time of the first event about the order: tells an exchange order from an order that existed
    -- before it.
    stored_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT orders_pkey PRIMARY KEY (merchant, identifier)
);

-- Orders whose shopper was erased, with the sequence number of the event. A snapshot with a lower number
-- that arrives later is erased before it is stored. One with a higher number stays.
CREATE TABLE erased_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    CONSTRAINT erased_orders_pkey PRIMARY KEY (merchant, identifier)
);

-- Exchange orders and their original orders. An original may itself be an exchange order.
CREATE TABLE exchange_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    original_order_identifier TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    placed_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT exchange_orders_pkey PRIMARY KEY (merchant, identifier)
);

-- Returns as JSON, with the columns that searches use. Indexes that begin with an identifier serve
-- searches in one merchant and in all merchants.
CREATE TABLE returns (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    -- Lower case; NULL if the shopper has no e-mail address.
    customer_email TEXT COLLATE "C",
    -- SHA-256 of the e-mail address of a giftee, or of the person who withdrew from the contract, to erase it;
    -- NULL if there is none.
    other_email_sha256 TEXT COLLATE "C",
    document TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- The time of the last erasure of the shopper's data. Older reports that arrive later are erased.
    erased_at TIMESTAMPTZ
-- Room in each page: an update that changes no indexed column then adds no entries to the indexes.
) WITH (fillfactor = 60);

CREATE INDEX returns_by_time ON returns (merchant, created_at, rma_identifier);
CREATE INDEX returns_by_status ON returns (merchant, status, created_at, rma_identifier);
CREATE INDEX returns_by_email ON returns (merchant, customer_email, created_at, rma_identifier)
    WHERE customer_email IS NOT NULL;
CREATE INDEX returns_by_other_email ON returns (merchant, other_email_sha256)
    WHERE other_email_sha256 IS NOT NULL;
-- For lists of all merchants. Only their queries repeat the condition, which is always true: otherwise
-- PostgreSQL might search one merchant in these indexes and read the rows of the others.
CREATE INDEX returns_of_all_by_time ON returns (created_at, rma_identifier)
    WHERE merchant IS DISTINCT FROM '';
CREATE INDEX returns_of_all_by_status ON returns (status, created_at, rma_identifier)
    WHERE merchant IS DISTINCT FROM '';
CREATE INDEX returns_of_all_by_email ON returns (customer_email, created_at, rma_identifier)
    WHERE customer_email IS NOT NULL AND merchant IS DISTINCT FROM '';
-- Created last. While the table is empty all these indexes seem to cost the same, and PostgreSQL takes the newest
-- one; a plan with another one would read all returns of a merchant to find one.
ALTER TABLE returns ADD CONSTRAINT returns_pkey PRIMARY KEY (rma_identifier, merchant);

-- The units of every return. A held unit cannot be returned again; canceling releases it. Units and timelines
-- have no foreign keys, whose checks took a quarter of the time of the statement that inserts a return: the same
-- statement inserts the units and the first entry, and no return is ever deleted.
CREATE TABLE return_units (
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C" NOT NULL,
    line_identifier TEXT COLLATE "C" NOT NULL,
    unit INTEGER NOT NULL,
    held BOOLEAN NOT NULL,
    -- An exchange was requested for the unit, so its order cannot have another exchange.
    exchanged BOOLEAN NOT NULL,
    tracking_number TEXT COLLATE "C",
    -- Sequence number of the event with the snapshot that the return was started from. An erasure with a lower
    -- number does not concern the return.
    order_sequence BIGINT NOT NULL,
    -- Begins with the order, to find the returns of an order in one merchant and in all merchants.
    CONSTRAINT return_units_pkey
        PRIMARY KEY (order_identifier, merchant, rma_identifier, line_identifier, unit)
);

-- A unit is in at most one return, also under concurrent requests. Also finds the held units of an
-- order.
CREATE UNIQUE INDEX return_units_held
    ON return_units (merchant, order_identifier, line_identifier, unit) WHERE held;
CREATE INDEX return_units_by_tracking_number
    ON return_units (tracking_number, merchant, rma_identifier) WHERE tracking_number IS NOT NULL;

-- The history of every return; delivery is the message to the merchant.
CREATE TABLE timeline (
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    merchant TEXT COLLATE "C" NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    actor TEXT NOT NULL,
    event TEXT NOT NULL,
    detail JSONB NOT NULL,
    delivery UUID,
    CONSTRAINT timeline_pkey PRIMARY KEY (merchant, rma_identifier, position)
);

-- Only the erasure of a shopper's data may change entries.
CREATE FUNCTION reject_timeline_change() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND current_setting('backhaul.erasing', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the timeline is append-only';
END
$$;

CREATE TRIGGER timeline_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON timeline
FOR EACH STATEMENT EXECUTE FUNCTION reject_timeline_change();

-- Failed look-ups of the last hour, and look-ups in progress. They limit guessing.
CREATE TABLE lookup_failures (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL,
    merchant TEXT COLLATE "C" NOT NULL,
    -- Digest of the order identifier as the shopper wrote it, whether the order exists or not; NULL for a deep link
    -- that is not valid.
    order_digest BYTEA,
    -- The network of the shopper.
    address TEXT COLLATE "C" NOT NULL
);

CREATE INDEX lookup_failures_by_order ON lookup_failures (merchant, order_digest, at);
CREATE INDEX lookup_failures_by_address ON lookup_failures (address, at);

-- Deep links that merchants and operators made. A link carries its id; a link without a row is refused.
CREATE TABLE deep_links (
    id UUID PRIMARY KEY,
    merchant TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C" NOT NULL,
    is_gift BOOLEAN NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    -- NULL while the link works.
    revoked_by TEXT,
    revoked_at TIMESTAMPTZ,
    CONSTRAINT deep_links_revoked CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
);

CREATE INDEX deep_links_by_order ON deep_links (merchant, order_identifier, created_at);
CREATE INDEX deep_links_by_expiry ON deep_links (expires_at);

-- Discrepancies between a merchant's data and ours, for people to look at. Rows with a fingerprint
-- are recorded once, because order snapshots repeat them. Rows of warehouse events and of refunds of
-- unknown returns have none and are recorded each time.
CREATE TABLE discrepancies (
    position BIGINT GENERATED ALWAYS AS IDENTITY,
    merchant TEXT COLLATE "C" NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    order_identifier TEXT COLLATE "C",
    rma_identifier TEXT COLLATE "C",
    detail JSONB NOT NULL,
    fingerprint BYTEA,
    -- NULL while the discrepancy is open.
    resolved_at TIMESTAMPTZ,
    -- The person, the client or the event type that resolved it.
    resolved_by TEXT,
    resolution_note TEXT,
    -- The return that a person assigned the refund to.
    assigned_rma_identifier TEXT COLLATE "C",
    state TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS
        (CASE WHEN resolved_at IS NULL THEN 'open' ELSE 'resolved' END) STORED,
    CONSTRAINT discrepancies_pkey PRIMARY KEY (merchant, position),
    CONSTRAINT discrepancies_resolution
        CHECK ((resolved_at IS NULL) = (resolved_by IS NULL)
            AND (resolved_at IS NULL) = (resolution_note IS NULL)),
    CONSTRAINT discrepancies_once UNIQUE (merchant, fingerprint)
);

CREATE INDEX discrepancies_by_kind ON discrepancies (merchant, kind, position);
CREATE INDEX discrepancies_by_state ON discrepancies (merchant, state, position);
CREATE INDEX discrepancies_by_kind_and_state ON discrepancies (merchant, kind, state, position);
CREATE INDEX discrepancies_by_order ON discrepancies (merchant, order_identifier, position)
    WHERE order_identifier IS NOT NULL;
CREATE INDEX discrepancies_by_return ON discrepancies (merchant, rma_identifier, position)
    WHERE rma_identifier IS NOT NULL;
-- For lists of all merchants, with the same condition as those of returns.
CREATE INDEX discrepancies_of_all ON discrepancies (position)
    WHERE merchant IS DISTINCT FROM '';
CREATE INDEX discrepancies_of_all_by_kind ON discrepancies (kind, position)
    WHERE merchant IS DISTINCT FROM '';
CREATE INDEX discrepancies_of_all_by_state ON discrepancies (state, position)
    WHERE merchant IS DISTINCT FROM '';
CREATE INDEX discrepancies_of_all_by_kind_and_state ON discrepancies (kind, state, position)
    WHERE merchant IS DISTINCT FROM '';
CREATE INDEX discrepancies_of_all_by_order ON discrepancies (order_identifier, position)
    WHERE order_identifier IS NOT NULL AND merchant IS DISTINCT FROM '';
CREATE INDEX discrepancies_of_all_by_return ON discrepancies (rma_identifier, position)
    WHERE rma_identifier IS NOT NULL AND merchant IS DISTINCT FROM '';
