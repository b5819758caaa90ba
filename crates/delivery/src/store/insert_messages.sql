-- Inserts messages, their deliveries and the counters of their ordering keys. Returns the ids and sequence numbers of
-- the deliveries, and whether they are queued.
-- Each message: $1 id, $2 merchant, $3 kind, $4 ordering key, $5 number of later messages of the same key in this
-- statement, $6 event, $7 body, $8 traceparent, $13 version, $14 end of the lease if it may be queued at once, or NULL.
-- Only the first message of a key in this statement has a lease. $9: the time. $15: whether the counters were locked
-- before this statement, which then sees all earlier messages.
-- Each ordering key: $10 merchant, $11 key, $12 number of its messages.
WITH counters AS (
    INSERT INTO delivery_ordering_keys AS counter (merchant, ordering_key, last_sequence)
    SELECT merchant, ordering_key, added + {sequence_floor}
    FROM unnest((SELECT $10), $11, $12) AS new (merchant, ordering_key, added)
    ON CONFLICT (merchant, ordering_key) DO UPDATE
    SET last_sequence = excluded.last_sequence
        + GREATEST(counter.last_sequence - {sequence_floor}, 0)
    -- An updated row has an `xmax`, an inserted one has none.
    RETURNING merchant, ordering_key, last_sequence, xmax = 0 AS is_new
), new AS (
    SELECT id, merchant, kind, version, ordering_key,
        COALESCE(last_sequence - later, 1) AS sequence, event, body, traceparent,
        -- No message can be before the first one of a new key.
        CASE WHEN leased_until IS NULL THEN NULL
            WHEN ordering_key IS NULL OR is_new THEN leased_until
            WHEN $15 AND (
                SELECT true FROM deliveries AS earlier
                WHERE earlier.merchant = new.merchant AND earlier.ordering_key = new.ordering_key
                ORDER BY earlier.sequence LIMIT 1
            ) IS NULL THEN leased_until
        END AS leased_until
    FROM unnest((SELECT $1), $2, $3, $4, $5, $6, $7, $8, $13, $14)
        AS new (id, merchant, kind, ordering_key, later, event, body, traceparent, version, leased_until)
    LEFT JOIN counters USING (merchant, ordering_key)
), messages AS (
    INSERT INTO delivery_messages
    SELECT id, merchant, kind, version, ordering_key, sequence, event, body, traceparent, $9
    FROM new
)
INSERT INTO deliveries
(id, merchant, kind, ordering_key, sequence, state, next_attempt_at, leased_until)
SELECT id, merchant, kind, ordering_key, sequence,
    CASE WHEN leased_until IS NULL THEN 'ready' ELSE 'queued' END, $9, leased_until
FROM new
RETURNING id, sequence, leased_until IS NOT NULL AS is_queued
