-- Finds the units of orders ($1 merchants, $2 identifiers) that are in a return that is not canceled, or whose exchange
-- was requested and not released.
SELECT units.* FROM unnest((SELECT $1), $2) AS requested (merchant, order_identifier), LATERAL (
    SELECT merchant, rma_identifier, order_identifier, line_identifier, unit, held,
        exchanged
    FROM return_units AS own WHERE own.merchant = requested.merchant
    AND own.order_identifier = requested.order_identifier AND (held OR exchanged) OFFSET 0
) AS units
