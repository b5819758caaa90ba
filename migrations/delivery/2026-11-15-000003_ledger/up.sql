-- The ledger of messages to merchants. What is under way is in `deliveries`, small and busy; what
-- was said and what came of it is in `delivery_messages` and `delivery_attempts`, written once and
-- dropped by the day. The day is in the id: a UUID of version 7 begins with its time.
CREATE TABLE delivery_messages (
    id UUID PRIMARY KEY,
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    ordering_key TEXT,
    sequence BIGINT NOT NULL,
    event TEXT NOT NULL,
    body BYTEA NOT NULL,
    traceparent TEXT,
    created_at TIMESTAMPTZ NOT NULL
) PARTITION BY RANGE (id);

CREATE INDEX delivery_messages_merchant ON delivery_messages (merchant, id);
CREATE INDEX delivery_messages_ordering_key ON delivery_messages (merchant, ordering_key, sequence)
WHERE ordering_key IS NOT NULL;

-- One row a request. `settled` is set on the request that ended the matter, for good or ill.
CREATE TABLE delivery_attempts (
    delivery UUID NOT NULL,
    round INTEGER NOT NULL,
    number INTEGER NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    latency_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER,
    detail TEXT NOT NULL,
    answer TEXT NOT NULL,
    settled TEXT,
    CONSTRAINT delivery_attempts_settled CHECK (settled IN ('delivered', 'dead'))
) PARTITION BY RANGE (delivery);

CREATE INDEX delivery_attempts_delivery ON delivery_attempts (delivery);
CREATE INDEX delivery_attempts_failed ON delivery_attempts (delivery) WHERE outcome <> 'delivered';

-- Messages that are neither delivered nor dead. `due_at` of a queued one is the end of its lease;
-- a held one waits for the message before it in its ordering_key.
CREATE TABLE deliveries (
    id UUID PRIMARY KEY,
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    ordering_key TEXT,
    sequence BIGINT NOT NULL,
    state TEXT NOT NULL,
    due_at TIMESTAMPTZ NOT NULL,
    round INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    requeues INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT deliveries_state CHECK (state IN ('ready', 'held', 'queued'))
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX deliveries_due ON deliveries (merchant, kind, state, due_at);
CREATE UNIQUE INDEX deliveries_ordering_key ON deliveries (merchant, ordering_key, sequence)
WHERE ordering_key IS NOT NULL;

-- How far each ordering_key has counted.
CREATE TABLE delivery_ordering_keys (
    merchant TEXT NOT NULL,
    ordering_key TEXT NOT NULL,
    last BIGINT NOT NULL,
    PRIMARY KEY (merchant, ordering_key)
) WITH (fillfactor = 80);

-- What we learnt of an endpoint. While its probes fail nothing is sent before `not_before`. Gone: it
-- answered 410 while the merchant had this version.
CREATE TABLE delivery_endpoints (
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    slow_start_threshold INTEGER NOT NULL,
    credit INTEGER NOT NULL,
    failed_probes INTEGER NOT NULL,
    not_before TIMESTAMPTZ NOT NULL,
    disabled_at_version BIGINT,
    PRIMARY KEY (merchant, kind)
) WITH (fillfactor = 50);

-- Requests by the hour, for reports; status 0 is no answer at all.
CREATE TABLE delivery_counts (
    hour TIMESTAMPTZ NOT NULL,
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (hour, merchant, kind, outcome, status)
) WITH (fillfactor = 70);

-- Replays by filter, and how far they came.
CREATE TABLE delivery_replays (
    id UUID PRIMARY KEY,
    requested_by TEXT NOT NULL,
    filter JSONB NOT NULL,
    force BOOLEAN NOT NULL,
    per_second INTEGER NOT NULL,
    last_seen UUID NOT NULL,
    replayed BIGINT NOT NULL DEFAULT 0,
    skipped BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    advanced_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    CONSTRAINT delivery_replays_per_second CHECK (per_second > 0)
);

CREATE INDEX delivery_replays_unfinished ON delivery_replays (id) WHERE finished_at IS NULL;
