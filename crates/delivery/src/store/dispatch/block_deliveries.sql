-- Blocks those of the ready deliveries $1 that stand behind another of their ordering key, and returns their ids.
WITH behind AS MATERIALIZED (
    SELECT later.id FROM deliveries AS later, LATERAL (
        SELECT FROM deliveries AS first
        WHERE first.merchant = later.merchant AND first.ordering_key = later.ordering_key
        AND first.sequence < later.sequence
        ORDER BY first.sequence LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) AS first
    WHERE later.id = ANY ($1) FOR NO KEY UPDATE OF later SKIP LOCKED
)
UPDATE deliveries SET state = 'blocked'
WHERE id = ANY (ARRAY (SELECT id FROM behind)) AND (state = 'ready') IS TRUE RETURNING id
