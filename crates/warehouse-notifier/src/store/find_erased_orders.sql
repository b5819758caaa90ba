SELECT stored.*
FROM unnest((SELECT $1), $2) AS requested (merchant, identifier), LATERAL (
    SELECT merchant, identifier, erased_at FROM erased_orders AS own
    WHERE own.merchant = requested.merchant AND own.identifier = requested.identifier LIMIT 1
) AS stored
