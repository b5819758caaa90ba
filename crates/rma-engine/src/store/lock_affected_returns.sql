-- Locks the returns with units of orders ($1 merchants, $2 identifiers) and the named returns ($3 merchants,
-- $4 identifiers), in the order of their keys.
WITH affected (merchant, rma_identifier) AS (
    SELECT units.* FROM unnest($1, $2) AS requested (merchant, order_identifier), LATERAL (
        SELECT merchant, rma_identifier FROM return_units AS own
        WHERE own.merchant = requested.merchant
        AND own.order_identifier = requested.order_identifier AND held OFFSET 0
    ) AS units
    UNION SELECT * FROM unnest($3, $4)
), sorted AS (
    SELECT * FROM affected ORDER BY merchant, rma_identifier
)
SELECT stored.* FROM sorted, LATERAL (
    SELECT merchant, rma_identifier, octet_length(document) AS bytes
    FROM returns AS own
    WHERE own.merchant = sorted.merchant AND own.rma_identifier = sorted.rma_identifier
    FOR NO KEY UPDATE
) AS stored
