-- Locks orders ($1 merchants, $2 identifiers). Returns no units if they have more than $3 bytes together.
SELECT requested.place, stored.updated_at, stored.sequence, stored.stored_at,
    CASE WHEN sum(octet_length(stored.shipped_units)) OVER () <= $3 THEN stored.shipped_units END AS shipped_units
FROM unnest($1, $2) WITH ORDINALITY AS requested (merchant, identifier, place), LATERAL (
    SELECT updated_at, sequence, stored_at, shipped_units FROM orders
    WHERE orders.merchant = requested.merchant AND orders.identifier = requested.identifier
    FOR NO KEY UPDATE
) AS stored
