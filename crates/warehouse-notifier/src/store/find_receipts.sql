SELECT stored.* FROM unnest((SELECT $1), $2, $3)
    AS requested (merchant, asn_number, unit_identifier), LATERAL (
    SELECT merchant, id, asn_number, line_identifier, unit_identifier, '' AS message,
        received_at
    FROM receipts AS own
    WHERE own.merchant = requested.merchant AND own.asn_number = requested.asn_number
    AND own.unit_identifier = requested.unit_identifier LIMIT 1
) AS stored
