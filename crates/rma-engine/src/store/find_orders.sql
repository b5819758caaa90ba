-- Finds orders ($1 merchants, $2 identifiers), none if they have more than $3 bytes together.
WITH found AS (
    SELECT stored.* FROM unnest((SELECT $1), $2) AS requested (merchant, identifier), LATERAL (
        SELECT merchant, identifier, document, sequence, shipped_units, stored_at FROM orders
        WHERE orders.merchant = requested.merchant AND orders.identifier = requested.identifier
        {lock}
    ) AS stored
), sized AS (
    SELECT *, sum(octet_length(document) + octet_length(shipped_units)) OVER () AS bytes FROM found
)
SELECT merchant, document, sequence, shipped_units, stored_at, (
    SELECT original_order_identifier FROM exchange_orders AS exchange
    WHERE exchange.merchant = sized.merchant AND exchange.identifier = sized.identifier
) AS original_order_identifier
FROM sized WHERE bytes <= $3
