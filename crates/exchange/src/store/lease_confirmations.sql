-- Leases waiting confirmations until $2, up to $3 in number and $4 bytes. Merchants take turns, and those in $5
-- (the merchants of confirmations in flight) come later. $1: the time.
WITH RECURSIVE merchants (merchant) AS (
    (SELECT merchant FROM confirmations WHERE state = 'waiting' ORDER BY merchant LIMIT 1)
    UNION ALL
    SELECT next_merchant.merchant FROM merchants, LATERAL (
        SELECT merchant FROM confirmations
        WHERE state = 'waiting' AND merchant > merchants.merchant
        ORDER BY merchant LIMIT 1
    ) AS next_merchant
), candidates AS (
    SELECT leasable.* FROM merchants, LATERAL (
        SELECT own.merchant, own.position, octet_length(own.document) AS bytes, ordered.has_order
        FROM confirmations AS own, LATERAL (SELECT (
            SELECT true FROM exchange_orders AS orders WHERE orders.merchant = own.merchant
            AND orders.original_order_id = own.original_order_id
        ) IS TRUE AS has_order) AS ordered
        WHERE own.merchant = merchants.merchant AND own.state = 'waiting'
        AND own.leased_until <= $1 AND (ordered.has_order OR NOT EXISTS (
            SELECT FROM confirmations AS earlier WHERE earlier.state = 'waiting'
            AND earlier.merchant = own.merchant
            AND earlier.original_order_id = own.original_order_id
            AND earlier.position < own.position
        ))
        ORDER BY own.position LIMIT (SELECT GREATEST($3 / count(*), 1) FROM merchants)
        FOR UPDATE OF own SKIP LOCKED
    ) AS leasable
), ranked AS (
    SELECT position, bytes, has_order, random() AS random_order,
    row_number() OVER (PARTITION BY merchant ORDER BY position) + (
        SELECT count(*) FROM unnest($5) AS busy (merchant) WHERE busy.merchant = candidates.merchant
    ) AS turn FROM candidates
), weighed AS (
    SELECT position, has_order, sum(bytes) OVER (ORDER BY turn, random_order) - bytes AS bytes_before
    FROM (SELECT * FROM ranked ORDER BY turn, random_order LIMIT $3) AS first
), leased AS (
    UPDATE confirmations SET leased_until = $2 WHERE position = ANY (
        ARRAY (SELECT position FROM weighed WHERE bytes_before < $4)
    ) RETURNING position, document, received_at, traceparent, erased
)
SELECT leased.*, weighed.has_order FROM leased JOIN weighed USING (position)
