WITH requested AS MATERIALIZED (
    SELECT merchant, identifier, position
    FROM unnest($1, $2) WITH ORDINALITY AS keys (merchant, identifier, position)
), free AS MATERIALIZED (
    SELECT position FROM requested, orders
    WHERE orders.merchant = requested.merchant AND orders.identifier = requested.identifier
    FOR SHARE OF orders SKIP LOCKED
)
SELECT position FROM requested
WHERE EXISTS (
    SELECT 1 FROM orders
    WHERE orders.merchant = requested.merchant AND orders.identifier = requested.identifier
) AND position NOT IN (SELECT position FROM free)
