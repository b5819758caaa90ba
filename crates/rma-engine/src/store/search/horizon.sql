-- The time before which all changes of returns are committed: transactions in progress hold locks on the seconds of
-- their changes, see time_of_change. A change that begins after this statement has a later time.
SELECT least(
    statement_timestamp(),
    (
        SELECT timestamptz '2020-01-01 00:00:00+00' + min(objid::bigint) * interval '1 second'
        FROM pg_locks
        WHERE locktype = 'advisory' AND classid = 6514791 AND objsubid = 2
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
) AS horizon
