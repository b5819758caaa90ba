-- Returns the orders of the merchant $1 that led to the order $2 through exchanges, oldest first, up to 100. `seen`
-- ends a cycle.
WITH RECURSIVE chain AS (
    SELECT $2 COLLATE "C" AS original_order_id, 0 AS back,
        ARRAY[$2 COLLATE "C"] AS seen
    UNION ALL
    SELECT orders.original_order_id, back + 1, seen || orders.original_order_id
    FROM chain JOIN exchange_orders AS orders ON orders.merchant = $1
    AND orders.exchange_order_identifier = chain.original_order_id
    WHERE back < 100 AND orders.original_order_id <> ALL (seen)
)
SELECT original_order_id FROM chain WHERE back > 0 ORDER BY back DESC
