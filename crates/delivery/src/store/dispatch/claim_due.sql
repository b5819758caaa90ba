-- Marks due deliveries as queued and returns them with their messages.
-- $1: the time. $2: the end of the lease. $7: maximum bytes of the batch.
-- `deliveries` has only unsettled rows, so any earlier row of the ordering key blocks.
-- Each endpoint: $3 merchant, $4 kind, $5 time before which none of its deliveries is due, $6 maximum messages.
WITH due AS (
    SELECT ready_delivery.*, requested.position FROM unnest($3, $4, $5, $6) WITH ORDINALITY
    AS requested (merchant, kind, none_due_before, max_messages, position),
    LATERAL (
        SELECT *, (
            SELECT true FROM deliveries AS earlier
            WHERE earlier.merchant = ready.merchant AND earlier.ordering_key = ready.ordering_key
            AND earlier.sequence < ready.sequence ORDER BY earlier.sequence LIMIT 1
        ) IS TRUE AS is_behind_another
        FROM deliveries AS ready
        WHERE ready.merchant = requested.merchant AND ready.kind = requested.kind
        AND ready.state = 'ready'
        AND ready.next_attempt_at >= requested.none_due_before AND ready.next_attempt_at <= $1
        ORDER BY ready.next_attempt_at LIMIT requested.max_messages
    ) AS ready_delivery
), rounds AS (
    SELECT *, row_number() OVER (PARTITION BY merchant, kind ORDER BY next_attempt_at, id) AS round,
    count(*) OVER () AS due_count
    FROM due
), sized AS (
    SELECT rounds.*, message.version, message.event, message.body, message.traceparent,
    sum(octet_length(message.body)) OVER (ORDER BY rounds.round, rounds.position)
    - octet_length(message.body) AS bytes_before
    FROM rounds LEFT JOIN LATERAL (
        SELECT version, event, body, traceparent FROM delivery_messages WHERE id = rounds.id LIMIT 1
    ) AS message ON NOT rounds.is_behind_another
), candidates AS (
    SELECT * FROM sized WHERE bytes_before IS NULL OR bytes_before < $7
), locked AS MATERIALIZED (
    SELECT id FROM deliveries WHERE id = ANY (
        ARRAY (SELECT id FROM candidates WHERE NOT is_behind_another)
    ) AND (state = 'ready' AND next_attempt_at <= $1) IS TRUE FOR NO KEY UPDATE SKIP LOCKED
), claimed AS (
    UPDATE deliveries SET state = 'queued', leased_until = $2 WHERE id = ANY (
        ARRAY (SELECT id FROM candidates WHERE body IS NOT NULL AND id IN (SELECT id FROM locked))
    ) AND (state = 'ready' AND next_attempt_at <= $1) IS TRUE RETURNING id
), postponed AS (
    UPDATE deliveries SET next_attempt_at = $2 WHERE id = ANY (
        ARRAY (SELECT id FROM candidates WHERE body IS NULL AND id IN (SELECT id FROM locked))
    ) AND (state = 'ready' AND next_attempt_at <= $1) IS TRUE RETURNING id
)
SELECT id, merchant, kind, next_attempt_at, sequence, replay_number, attempts, releases,
is_behind_another, id IN (SELECT id FROM claimed UNION ALL SELECT id FROM postponed) AS is_changed,
due_count, version, event, body, traceparent
FROM candidates ORDER BY round, position
