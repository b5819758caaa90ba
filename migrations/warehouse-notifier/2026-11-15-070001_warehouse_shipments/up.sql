-- Key columns use the C collation, which is cheaper and sorts the same on every machine. Identifiers that
-- may be JSON numbers are stored as text in columns and unchanged in the JSON.

-- Inbound ASNs: shipments that merchants expect to arrive at a warehouse.
CREATE TABLE inbound_asns (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    -- JSON without the lines.
    header TEXT NOT NULL,
    lines INTEGER NOT NULL,
    units BIGINT NOT NULL,
    -- Digest of the request body, to recognize a repeated request.
    digest BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT inbound_asns_pkey PRIMARY KEY (merchant, asn_number)
);

CREATE TABLE inbound_lines (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    line_identifier TEXT COLLATE "C" NOT NULL,
    -- The position of the line in the ASN, from 0.
    position INTEGER NOT NULL,
    -- JSON, including the fields of the line's carton.
    line TEXT NOT NULL,
    CONSTRAINT inbound_lines_pkey PRIMARY KEY (merchant, asn_number, line_identifier)
);

-- Units that arrived at a warehouse, one row for each.
CREATE TABLE receipts (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    unit_identifier TEXT COLLATE "C" NOT NULL,
    id UUID NOT NULL,
    line_identifier TEXT COLLATE "C" NOT NULL,
    -- The message to the merchant, as JSON.
    message TEXT NOT NULL,
    -- The warehouse rejected the unit. A later receipt of the same unit replaces the row.
    rejected BOOLEAN NOT NULL DEFAULT FALSE,
    received_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT receipts_pkey PRIMARY KEY (merchant, asn_number, unit_identifier)
);

-- For the list of all merchants' receipts.
CREATE UNIQUE INDEX receipts_by_id ON receipts (id);

CREATE INDEX receipts_by_merchant ON receipts (merchant, id);

CREATE INDEX receipts_by_asn ON receipts (merchant, asn_number, id);

-- Outbound shipments: shipments that leave a warehouse.
CREATE TABLE outbound_shipments (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    shipment_type TEXT NOT NULL,
    -- JSON without the cartons.
    header TEXT NOT NULL,
    units INTEGER NOT NULL,
    digest BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT outbound_shipments_pkey PRIMARY KEY (merchant, asn_number)
);

-- Messages that an outbound shipment is split into. No part has the number of another part or of another
-- shipment.
CREATE TABLE outbound_parts (
    merchant TEXT COLLATE "C" NOT NULL,
    asn_number TEXT COLLATE "C" NOT NULL,
    shipment TEXT COLLATE "C" NOT NULL,
    -- The position of the part in the shipment, from 0.
    position INTEGER NOT NULL,
    units INTEGER NOT NULL,
    -- JSON array.
    cartons TEXT NOT NULL,
    CONSTRAINT outbound_parts_pkey PRIMARY KEY (merchant, asn_number),
    CONSTRAINT outbound_parts_shipment_fkey FOREIGN KEY (merchant, shipment)
    REFERENCES outbound_shipments (merchant, asn_number)
);

CREATE UNIQUE INDEX outbound_parts_by_shipment ON outbound_parts (merchant, shipment, position);

-- Orders that a warehouse drop-ships for a merchant. A cancelled order accepts no more messages.
CREATE TABLE drop_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    -- The merchant's identifier of the order.
    identifier TEXT COLLATE "C" NOT NULL,
    cancelled_at TIMESTAMPTZ,
    CONSTRAINT drop_orders_pkey PRIMARY KEY (merchant, identifier)
);

-- Confirmations and cancellations of drop-shipped orders, one row for each message.
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

-- For the list of all merchants' drop shipments.
CREATE UNIQUE INDEX drop_shipments_by_id ON drop_shipments (id);

CREATE INDEX drop_shipments_by_merchant ON drop_shipments (merchant, id);

CREATE INDEX drop_shipments_by_order ON drop_shipments (merchant, order_identifier, id);

-- Orders and returns whose shopper was erased. A report from before that time is erased before it is stored.
CREATE TABLE erased_orders (
    merchant TEXT COLLATE "C" NOT NULL,
    -- The identifier of an order or an RMA.
    identifier TEXT COLLATE "C" NOT NULL,
    erased_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT erased_orders_pkey PRIMARY KEY (merchant, identifier)
);

-- The keys by which staff find a record: ASN numbers, tracking numbers and order identifiers.
CREATE TABLE record_keys (
    -- Digest of the key's name and value, because a tracking number may be too long for an index.
    key BYTEA NOT NULL,
    merchant TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    -- The number of the ASN, or the order identifier of the drop shipment.
    number TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT record_keys_pkey PRIMARY KEY (key, merchant, kind, number),
    CONSTRAINT record_keys_kind CHECK (kind IN ('inbound_asn', 'outbound_shipment', 'drop_shipment'))
);
