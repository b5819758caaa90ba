-- Events that the broker has not confirmed yet, inserted in the transactions that cause them.
CREATE TABLE outbox (
    sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id UUID NOT NULL,
    routing_key TEXT NOT NULL,
    -- JSON, a CloudEvents envelope without its `sequence`.
    event TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- Events that a queue's consumer has handled.
CREATE TABLE inbox (
    queue TEXT NOT NULL,
    event_id UUID NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (queue, event_id)
);

CREATE INDEX inbox_received_at ON inbox (received_at);
