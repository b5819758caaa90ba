-- Moves confirmed events ($1 sequence numbers, $2 ids) to the published events.
WITH published AS (DELETE FROM outbox
    WHERE sequence = ANY ($1) AND event_id = ANY ($2) RETURNING *)
INSERT INTO published_events
    (published_at, sequence, event_id, routing_key, event, created_at)
SELECT now(), sequence, event_id, routing_key, event, created_at FROM published
