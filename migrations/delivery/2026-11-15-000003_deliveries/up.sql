-- Messages to merchants. `deliveries` holds the messages that are not settled yet; it is small and
-- changes often. `delivery_messages` and `delivery_attempts` are the history: rows are written once,
-- except that a shopper's data is erased, and whole days are dropped. Both are partitioned by id: ids are
-- UUIDs of version 7, which begin with their time of creation.
CREATE TABLE delivery_messages (
    id UUID PRIMARY KEY,
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Version of the body. The endpoint may have chosen another one since.
    version INTEGER NOT NULL,
    -- In the order of bytes, so that the keys below a key are a range.
    ordering_key TEXT COLLATE "C",
    -- Position within the ordering key, from 1.
    sequence BIGINT NOT NULL,
    event TEXT NOT NULL,
    body BYTEA NOT NULL,
    traceparent TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    -- Whether a shopper's data was erased. A dead letter and a response that arrives later have the data still.
    is_erased BOOLEAN NOT NULL DEFAULT false
) PARTITION BY RANGE (id);

-- Only queries of one merchant repeat the condition, which is always true. Otherwise PostgreSQL might look for
-- an id in this index, from end to end: a plan that was made while a partition was empty takes either index.
CREATE INDEX delivery_messages_merchant ON delivery_messages (merchant, id) WHERE merchant IS DISTINCT FROM '';
-- The ordering key comes first: operators search it for all merchants.
CREATE INDEX delivery_messages_ordering_key ON delivery_messages (ordering_key, merchant, sequence)
WHERE ordering_key IS NOT NULL;

-- One row for each HTTP request, or for an attempt that failed before the request.
CREATE TABLE delivery_attempts (
    delivery UUID NOT NULL,
    -- 0 for the first delivery, 1 for the first replay, and so on.
    replay_number INTEGER NOT NULL,
    number INTEGER NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    latency_ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    -- HTTP status code; null when there was no response.
    status INTEGER,
    detail TEXT NOT NULL,
    -- First bytes of the response body.
    response_body TEXT NOT NULL,
    -- Final state of the delivery, on the attempt that settled it.
    settled TEXT,
    -- Headers as lines `name: value`, with secrets masked. Request headers that follow from the message
    -- are left out; there are none if the attempt failed before the request.
    request_headers TEXT NOT NULL DEFAULT '',
    response_headers TEXT NOT NULL DEFAULT '',
    merchant TEXT NOT NULL,
    CONSTRAINT delivery_attempts_settled CHECK (settled IN ('delivered', 'dead'))
) PARTITION BY RANGE (delivery);

CREATE INDEX delivery_attempts_delivery ON delivery_attempts (delivery);
-- Failures and dead deliveries of one merchant and of all. Only queries of all merchants repeat the second
-- condition of their indexes, which is always true: otherwise PostgreSQL might look for the rows of one merchant
-- among those of all.
CREATE INDEX delivery_attempts_failed ON delivery_attempts (merchant, delivery) WHERE outcome <> 'delivered';
CREATE INDEX delivery_attempts_failed_of_all ON delivery_attempts (delivery)
WHERE outcome <> 'delivered' AND merchant IS DISTINCT FROM '';
CREATE INDEX delivery_attempts_dead ON delivery_attempts (merchant, delivery) WHERE settled = 'dead';
CREATE INDEX delivery_attempts_dead_of_all ON delivery_attempts (delivery)
WHERE settled = 'dead' AND merchant IS DISTINCT FROM '';

-- Deliveries that are neither delivered nor dead. A ready delivery is sent at `next_attempt_at`. A
-- blocked delivery waits behind another of its ordering key. A queued delivery is in the broker or
-- with a sender until it is settled or its lease expires.
CREATE TABLE deliveries (
    id UUID PRIMARY KEY,
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    ordering_key TEXT COLLATE "C",
    sequence BIGINT NOT NULL,
    state TEXT NOT NULL,
    next_attempt_at TIMESTAMPTZ NOT NULL,
    leased_until TIMESTAMPTZ,
    replay_number INTEGER NOT NULL DEFAULT 0,
    -- Finished attempts since creation or the last replay.
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Times the delivery left the broker unsettled since the last attempt.
    releases INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT deliveries_state CHECK (state IN ('ready', 'blocked', 'queued')),
    CONSTRAINT deliveries_lease CHECK ((state = 'queued') = (leased_until IS NOT NULL))
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);

-- Ready deliveries of one endpoint, in the order in which they are sent.
CREATE INDEX deliveries_ready ON deliveries (merchant, kind, next_attempt_at) WHERE state = 'ready';
-- Ready deliveries of all endpoints: the dispatcher reads the part since it last looked. The expression keeps
-- the planner from using this index for the deliveries of one endpoint.
CREATE INDEX deliveries_ready_at ON deliveries ((next_attempt_at AT TIME ZONE 'UTC'))
WHERE state = 'ready';
CREATE INDEX deliveries_not_ready ON deliveries (state, merchant, kind, id) WHERE state <> 'ready';
CREATE UNIQUE INDEX deliveries_ordering_key ON deliveries (merchant, ordering_key, sequence)
WHERE ordering_key IS NOT NULL;

-- Last sequence number of each ordering key.
CREATE TABLE delivery_ordering_keys (
    merchant TEXT COLLATE "C" NOT NULL,
    ordering_key TEXT COLLATE "C" NOT NULL,
    last_sequence BIGINT NOT NULL,
    PRIMARY KEY (merchant, ordering_key)
) WITH (fillfactor = 80);

-- Send windows and health of endpoints.
CREATE TABLE delivery_endpoints (
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Deliveries that may be in flight.
    window_size INTEGER NOT NULL,
    -- Below this size each success widens the window; above it, a whole window of successes does.
    slow_start_threshold INTEGER NOT NULL,
    -- Successes since the window last grew.
    window_acks INTEGER NOT NULL,
    failed_probes INTEGER NOT NULL,
    -- While probes fail, nothing is sent before this time; otherwise the end of the last attempt.
    not_before TIMESTAMPTZ NOT NULL,
    last_success_at TIMESTAMPTZ,
    last_success_status INTEGER,
    last_failure_at TIMESTAMPTZ,
    -- HTTP status code; null when there was no response.
    last_failure_status INTEGER,
    last_failure_outcome TEXT,
    -- Time since which the endpoint fails; null if it does not fail.
    failing_since TIMESTAMPTZ,
    PRIMARY KEY (merchant, kind)
) WITH (fillfactor = 50);

-- Failing endpoints, in the order of lists, and those with the longest time first. The column changes rarely, so
-- the indexes do not slow settlements.
CREATE INDEX delivery_endpoints_failing ON delivery_endpoints (merchant COLLATE "C", kind COLLATE "C")
WHERE failing_since IS NOT NULL;
CREATE INDEX delivery_endpoints_failing_since ON delivery_endpoints (failing_since)
WHERE failing_since IS NOT NULL;

-- Endpoints whose next delivery an operator retried. The dispatcher looks at them again and deletes the rows,
-- within a second.
CREATE TABLE delivery_wake_ups (
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (merchant, kind)
);

-- The last sample that each endpoint accepted. Samples are not deliveries.
CREATE TABLE delivery_samples (
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    accepted_at TIMESTAMPTZ NOT NULL,
    -- HTTP status code.
    status INTEGER NOT NULL,
    PRIMARY KEY (merchant, kind)
);

-- Requests of people and clients to send samples, the record of who sent what.
CREATE TABLE delivery_sample_requests (
    -- Version 7, so that ids sort by time.
    id UUID PRIMARY KEY,
    merchant TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    -- The event of the samples, or `sample`.
    event TEXT NOT NULL,
    kinds TEXT [] NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX delivery_sample_requests_merchant ON delivery_sample_requests (merchant, id);
-- For the deletion of old ones.
CREATE INDEX delivery_sample_requests_requested_at ON delivery_sample_requests (requested_at);

-- Attempts per hour, for reports. Status 0 stands for no response.
CREATE TABLE delivery_counts (
    hour TIMESTAMPTZ NOT NULL,
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    status INTEGER NOT NULL,
    attempts BIGINT NOT NULL,
    PRIMARY KEY (hour, merchant, kind, outcome, status)
) WITH (fillfactor = 70);

-- For the report of one merchant.
CREATE INDEX delivery_counts_merchant ON delivery_counts (merchant, hour, kind, outcome, status);

-- Attempts per hour by duration, for percentiles. Counts of a bucket can be added up.
CREATE TABLE delivery_latencies (
    merchant TEXT NOT NULL,
    kind TEXT NOT NULL,
    hour TIMESTAMPTZ NOT NULL,
    -- Position of the upper bound in `BOUNDS_MS`, see `histogram.rs`.
    bucket SMALLINT NOT NULL,
    attempts BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    PRIMARY KEY (merchant, kind, hour, bucket)
) WITH (fillfactor = 70);

-- Rows are inserted in the order of their hours.
CREATE INDEX delivery_latencies_hour ON delivery_latencies USING brin (hour);

-- The same of all merchants. Several slots, because every settlement updates these rows.
CREATE TABLE delivery_totals (
    hour TIMESTAMPTZ NOT NULL,
    kind TEXT NOT NULL,
    bucket SMALLINT NOT NULL,
    slot INTEGER NOT NULL,
    attempts BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    PRIMARY KEY (hour, kind, bucket, slot)
) WITH (fillfactor = 50);

-- Replays and their progress.
CREATE TABLE delivery_replays (
    id UUID PRIMARY KEY,
    requested_by TEXT NOT NULL,
    filter JSONB NOT NULL,
    force BOOLEAN NOT NULL,
    per_second INTEGER NOT NULL,
    state TEXT NOT NULL,
    -- Deliveries that matched the filter when the replay was started, counted up to a limit.
    matched BIGINT NOT NULL,
    -- Deliveries up to this id are done.
    last_delivery_id UUID NOT NULL,
    replayed BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    advanced_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    -- The person or client that last paused, resumed or stopped the replay.
    changed_by TEXT,
    CONSTRAINT delivery_replays_per_second CHECK (per_second > 0),
    CONSTRAINT delivery_replays_state
    CHECK (state IN ('running', 'paused', 'stopped', 'finished')),
    CONSTRAINT delivery_replays_finished
    CHECK ((state IN ('stopped', 'finished')) = (finished_at IS NOT NULL))
);

CREATE INDEX delivery_replays_running ON delivery_replays (id) WHERE state = 'running';
CREATE INDEX delivery_replays_state ON delivery_replays (state, id);
CREATE INDEX delivery_replays_merchant ON delivery_replays ((filter ->> 'merchant'), id);
CREATE INDEX delivery_replays_merchant_state ON delivery_replays ((filter ->> 'merchant'), state, id);
-- For the deletion of old ones.
CREATE INDEX delivery_replays_finished_at ON delivery_replays (finished_at);
