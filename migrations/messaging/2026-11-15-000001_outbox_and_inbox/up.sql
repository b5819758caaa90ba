-- Events that the broker has not confirmed yet, inserted in the transactions that cause them.
CREATE TABLE outbox (
    sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id UUID NOT NULL,
    routing_key TEXT NOT NULL,
    -- JSON, a CloudEvents envelope without its `sequence`.
    event TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

-- Events that the broker confirmed, kept to publish them again. The relay moves them here from the
-- outbox. Rows are written once, except that a shopper's data is erased. Whole days are dropped.
CREATE TABLE published_events (
    -- Time of the database, so that it grows whichever replica publishes.
    published_at TIMESTAMPTZ NOT NULL,
    sequence BIGINT NOT NULL,
    event_id UUID NOT NULL,
    routing_key TEXT NOT NULL,
    event TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (published_at, sequence)
) PARTITION BY RANGE (published_at);

-- Finds the events about an order or a return. A hash index, because a subject may be long. The subject is
-- at the start of an event, so finding it is cheap.
CREATE INDEX published_events_subject ON published_events
USING hash ((substring(event FROM '"subject":"((?:[^"\\]|\\.)*)"')));

-- Creates the partitions of the coming days, drops the expired ones and returns the names of those. Only
-- the owner of a table can do this, and the serving role need not be the owner, so the function has the
-- rights of the owner. Queries that arrive while it waits for a lock wait as long.
CREATE FUNCTION maintain_published_events(today DATE, retention_days INTEGER) RETURNS SETOF TEXT
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    day DATE;
    partition TEXT;
BEGIN
    -- Yesterday too: the clock of another replica may be behind.
    FOR day IN SELECT today + ahead FROM generate_series(-1, 6) AS ahead LOOP
        partition := 'published_events_' || to_char(day, 'YYYYMMDD');
        IF to_regclass(partition) IS NULL THEN
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF published_events FOR VALUES FROM (%L) TO (%L)',
                partition, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'
            );
        END IF;
    END LOOP;
    FOR partition IN
        SELECT child.relname::text FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
        WHERE inhparent = 'published_events'::regclass
        AND child.relname < 'published_events_' || to_char(today - retention_days, 'YYYYMMDD')
    LOOP
        EXECUTE format('DROP TABLE %I', partition);
        RETURN NEXT partition;
    END LOOP;
END $$;

-- Requests to publish events again, and their progress.
CREATE TABLE event_republishes (
    -- Version 7, so that ids sort by time.
    id UUID PRIMARY KEY,
    requested_by TEXT NOT NULL,
    -- Events first published at `since` or later and before `until`.
    since TIMESTAMPTZ NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    -- Empty for all types that services consume.
    types TEXT [] NOT NULL,
    state TEXT NOT NULL,
    -- Events that matched when the request came, counted up to a limit.
    total BIGINT NOT NULL,
    -- Events that the broker confirmed again.
    done BIGINT NOT NULL,
    -- Events up to this one are done.
    last_published_at TIMESTAMPTZ NOT NULL,
    last_sequence BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ,
    CONSTRAINT event_republishes_state CHECK (state IN ('running', 'stopped', 'finished')),
    CONSTRAINT event_republishes_finished CHECK ((state = 'running') = (finished_at IS NULL))
);

CREATE UNIQUE INDEX event_republishes_running ON event_republishes (state) WHERE state = 'running';

-- Events that a queue's consumer has handled.
CREATE TABLE inbox (
    queue TEXT NOT NULL,
    event_id UUID NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (queue, event_id)
);

CREATE INDEX inbox_received_at ON inbox (received_at);

-- The database that wrote the row. In a restored database the timeline, the oid of the database or the
-- transaction of the row differs.
CREATE TABLE database_identity (
    is_only BOOLEAN PRIMARY KEY DEFAULT true,
    identity TEXT NOT NULL,
    -- Sequence numbers up to this one may have been used before a restore.
    sequence_floor BIGINT NOT NULL,
    noted_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT database_identity_is_only CHECK (is_only)
);

-- Advances the sequence of the outbox, with the rights of the owner: the serving role can only draw
-- numbers.
CREATE FUNCTION advance_outbox_sequence(BIGINT) RETURNS VOID
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT setval(pg_get_serial_sequence('outbox', 'sequence')::regclass, $1)
    WHERE $1 > COALESCE(pg_sequence_last_value(pg_get_serial_sequence('outbox', 'sequence')::regclass), 0)
$$;
