SELECT requested.place, erased.sequence
FROM unnest($1, $2) WITH ORDINALITY AS requested (merchant, identifier, place), LATERAL (
    SELECT sequence FROM erased_orders AS own
    WHERE own.merchant = requested.merchant AND own.identifier = requested.identifier LIMIT 1
) AS erased
