-- Returns the positions of those of the orders ($1 merchants, $2 identifiers) that another transaction has locked: they
-- exist, and FOR SHARE skips them. The statement holds a weak lock on the free ones until its transaction ends.
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
