-- Requests for the labels of parcels, and the labels that providers made.
CREATE TABLE label_requests (
    merchant TEXT COLLATE "C" NOT NULL,
    -- Also the id of the message to the provider, so that every attempt and every replay has the same key. Version 7, so
    -- that ids sort by time.
    id UUID NOT NULL,
    rma_identifier TEXT COLLATE "C" NOT NULL,
    -- The number of the parcel in the return, from 1.
    parcel INTEGER NOT NULL,
    -- The number of parcels of the return.
    parcel_count INTEGER NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    -- The units in the parcel as JSON.
    units TEXT NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    -- The label, from the response of the provider.
    tracking_number TEXT COLLATE "C",
    carrier TEXT,
    service TEXT,
    label_url TEXT,
    cost_cents BIGINT,
    currency TEXT,
    expires_at TIMESTAMPTZ,
    -- The same time, until it is known whether the label was used.
    expiry_due_at TIMESTAMPTZ,
    -- A label that came as a document, and the code that the carrier scans: both sealed for this request.
    document BYTEA STORAGE EXTERNAL,
    document_format TEXT COLLATE "C",
    qr_code BYTEA STORAGE EXTERNAL,
    -- Since when the row has one of them.
    sealed_at TIMESTAMPTZ,
    -- The reason of a refusal, and the words of the provider or of a failure.
    refusal TEXT,
    detail TEXT,
    -- Since when the message is dead; NULL again after a replay that arrived.
    undeliverable_since TIMESTAMPTZ,
    -- The message that cancels the request.
    cancellation UUID,
    CONSTRAINT label_requests_state CHECK
        (state IN ('requested', 'accepted', 'bought', 'refused', 'canceled', 'expired')),
    CONSTRAINT label_requests_bought CHECK (state <> 'bought' OR tracking_number IS NOT NULL),
    CONSTRAINT label_requests_refused CHECK ((state = 'refused') = (refusal IS NOT NULL)),
    CONSTRAINT label_requests_document CHECK ((document IS NULL) = (document_format IS NULL)),
    CONSTRAINT label_requests_sealed CHECK
        ((sealed_at IS NULL) = (document IS NULL AND qr_code IS NULL))
);

-- A parcel has at most one label, or request that may become one.
CREATE UNIQUE INDEX label_requests_live ON label_requests (rma_identifier, merchant, parcel)
    WHERE state IN ('requested', 'accepted', 'bought');
CREATE INDEX label_requests_by_return ON label_requests (rma_identifier, id);
CREATE INDEX label_requests_expiry ON label_requests (expiry_due_at)
    WHERE state = 'bought' AND expiry_due_at IS NOT NULL;
-- For the removal of documents and codes after their retention.
CREATE INDEX label_requests_sealed_at ON label_requests (sealed_at) WHERE sealed_at IS NOT NULL;
-- Created last, as that of returns: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE label_requests ADD CONSTRAINT label_requests_pkey PRIMARY KEY (merchant, id);
