-- Inserts messages, their deliveries and the counters of their ordering keys.
-- Each message: $1 id, $2 merchant, $3 kind, $4 ordering key, $5 number of later messages of the same key in this
-- statement, $6 event, $7 body, $8 traceparent, $13 version. $9: the time.
-- Each ordering key: $10 merchant, $11 key, $12 number of its messages.
WITH counters AS (
    INSERT INTO delivery_ordering_keys AS counter (merchant, ordering_key, last_sequence)
    SELECT merchant, ordering_key, added + {sequence_floor}
    FROM unnest((SELECT $10), $11, $12) AS new (merchant, ordering_key, added)
    ON CONFLICT (merchant, ordering_key) DO UPDATE
    SET last_sequence = excluded.last_sequence
        + GREATEST(counter.last_sequence - {sequence_floor}, 0)
    RETURNING merchant, ordering_key, last_sequence
), new AS (
    SELECT id, merchant, kind, version, ordering_key,
        COALESCE(last_sequence - later, 1) AS sequence, event, body, traceparent
    FROM unnest((SELECT $1), $2, $3, $4, $5, $6, $7, $8, $13)
        AS new (id, merchant, kind, ordering_key, later, event, body, traceparent, version)
    LEFT JOIN counters USING (merchant, ordering_key)
), messages AS (
    INSERT INTO delivery_messages
    SELECT id, merchant, kind, version, ordering_key, sequence, event, body, traceparent, $9
    FROM new
)
INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, next_attempt_at)
SELECT id, merchant, kind, ordering_key, sequence, 'ready', $9 FROM new
