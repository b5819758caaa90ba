-- One row per idempotency key: the request that used it and the response to that request.
CREATE TABLE idempotency_keys (
    merchant TEXT COLLATE "C" NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    request_digest BYTEA NOT NULL,
    -- JSON. Empty inside the transaction that does the work, and for events, which have no response.
    response TEXT NOT NULL,
    completed_at TIMESTAMPTZ NOT NULL,
    -- The return that the response is about, to erase a shopper's data in it. NULL for operations whose responses
    -- have no personal data: their update then adds no entry to the index.
    rma_identifier TEXT COLLATE "C" GENERATED ALWAYS AS (
        CASE WHEN operation IN ('returns', 'receipts')
        THEN substring(response FROM '"rma_identifier":"([^"]*)"') END
    ) STORED,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (merchant, operation, key)
-- Room in each page: the update that stores the response then adds no entries to the indexes.
) WITH (fillfactor = 60);

CREATE INDEX idempotency_keys_completed_at ON idempotency_keys (completed_at);
CREATE INDEX idempotency_keys_by_return ON idempotency_keys (merchant, rma_identifier)
WHERE rma_identifier IS NOT NULL;
