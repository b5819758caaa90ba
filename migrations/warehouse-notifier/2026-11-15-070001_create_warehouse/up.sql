-- Keys are compared byte by byte: cheaper, and the same on every machine. Identifiers that may be
-- numbers are kept as text here, and as they came inside the documents.

-- What merchants expect to arrive.
CREATE TABLE inbound_asns (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    -- JSON: everything but the lines.
    header TEXT NOT NULL,
    lines INTEGER NOT NULL,
    units BIGINT NOT NULL,
    -- Of the body it came in: equal when nothing changed.
    digest BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT inbound_asns_pkey PRIMARY KEY (merchant, asn_number)
);

CREATE TABLE inbound_lines (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    line_identifier TEXT COLLATE "C" NOT NULL,
    place INTEGER NOT NULL,
    -- JSON, with what the line's carton says.
    line TEXT NOT NULL,
    CONSTRAINT inbound_lines_pkey PRIMARY KEY (merchant, asn_number, line_identifier)
);

-- Units that arrived, each once.
CREATE TABLE receipts (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    unit_identifier TEXT COLLATE "C" NOT NULL,
    id UUID NOT NULL,
    line_identifier TEXT COLLATE "C" NOT NULL,
    -- The message, as the merchant receives it.
    message TEXT NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT receipts_pkey PRIMARY KEY (merchant, asn_number, unit_identifier)
);

CREATE INDEX receipts_by_id ON receipts (merchant, id);

-- Shipments that leave a warehouse.
CREATE TABLE outbound_shipments (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    shipment_type TEXT NOT NULL,
    -- JSON: everything but the cartons.
    header TEXT NOT NULL,
    units INTEGER NOT NULL,
    digest BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT outbound_shipments_pkey PRIMARY KEY (merchant, asn_number)
);

-- The messages a shipment is told in. Their numbers are as unique as the shipments'.
CREATE TABLE outbound_parts (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    shipment TEXT COLLATE "C" NOT NULL,
    place INTEGER NOT NULL,
    units INTEGER NOT NULL,
    -- A JSON array.
    cartons TEXT NOT NULL,
    CONSTRAINT outbound_parts_pkey PRIMARY KEY (merchant, asn_number),
    CONSTRAINT outbound_parts_shipment_fkey FOREIGN KEY (merchant, shipment)
    REFERENCES outbound_shipments (merchant, asn_number)
);

CREATE UNIQUE INDEX outbound_parts_by_shipment ON outbound_parts (merchant, shipment, place);

-- Orders sent on a merchant's behalf: whether there is anything left to tell.
CREATE TABLE drop_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    -- The merchant's own identifier.
    identifier TEXT COLLATE "C" NOT NULL,
    cancelled_at TIMESTAMPTZ,
    CONSTRAINT drop_orders_pkey PRIMARY KEY (merchant, identifier)
);

-- What was told of them, each once.
CREATE TABLE drop_shipments (
    merchant TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    reference TEXT COLLATE "C" NOT NULL,
    id UUID NOT NULL,
    order_identifier TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT drop_shipments_pkey PRIMARY KEY (merchant, kind, reference),
    CONSTRAINT drop_shipments_kind
    CHECK (kind IN ('confirmation', 'cancellation', 'partial_cancellation'))
);
