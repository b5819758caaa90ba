-- Events written in the transaction that caused them, waiting for the broker to confirm them.
CREATE TABLE outbox (
    sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id UUID NOT NULL,
    routing_key TEXT NOT NULL,
    event TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- Events whose effect is in this database.
CREATE TABLE inbox (
    queue TEXT NOT NULL,
    event_id UUID NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (queue, event_id)
);

CREATE INDEX inbox_received_at ON inbox (received_at);
