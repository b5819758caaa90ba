-- The time of a change by the clock of the database. The transaction holds a lock on the second of the time, counted
-- from 2020, so that a list of changes ends before those of transactions in progress. The class of the locks is
-- unique within the database.
CREATE FUNCTION time_of_change() RETURNS TIMESTAMPTZ LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(
        6514791, floor(extract(epoch FROM clock_timestamp() - timestamptz '2020-01-01 00:00:00+00'))::integer
    );
    RETURN clock_timestamp();
END
$$;

ALTER TABLE timeline ADD COLUMN recorded_at TIMESTAMPTZ;
-- Copies the time of each entry. The table rejects an update.
ALTER TABLE timeline ALTER COLUMN recorded_at TYPE TIMESTAMPTZ USING at;
ALTER TABLE timeline
    ALTER COLUMN recorded_at SET DEFAULT time_of_change(),
    ALTER COLUMN recorded_at SET NOT NULL;

CREATE INDEX timeline_by_time ON timeline (merchant, recorded_at, position);
-- For lists of all merchants, with the same condition as those of returns.
CREATE INDEX timeline_of_all_by_time ON timeline (recorded_at, position) WHERE merchant IS DISTINCT FROM '';
-- Created last again: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE timeline DROP CONSTRAINT timeline_pkey;
ALTER TABLE timeline ADD CONSTRAINT timeline_pkey PRIMARY KEY (merchant, rma_identifier, position);
