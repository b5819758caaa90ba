-- Moves confirmed events ($1 sequence numbers, $2 ids) to the published events. Those that another transaction has
-- locked stay, so that an erasure delays no others.
WITH free AS (
    SELECT sequence FROM outbox
    WHERE sequence = ANY ($1) AND event_id = ANY ($2) FOR UPDATE SKIP LOCKED
), published AS (
    DELETE FROM outbox WHERE sequence = ANY (ARRAY(SELECT sequence FROM free)) RETURNING *
)
INSERT INTO published_events
    (published_at, sequence, event_id, routing_key, event, created_at)
SELECT now(), sequence, event_id, routing_key, event, created_at FROM published
