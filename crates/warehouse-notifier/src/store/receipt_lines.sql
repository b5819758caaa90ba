SELECT stored.* FROM unnest((SELECT $1), $2, $3)
    AS requested (merchant, asn_number, line_identifier), LATERAL (
    SELECT merchant, asn_number, line_identifier, line FROM inbound_lines AS own
    WHERE own.merchant = requested.merchant AND own.asn_number = requested.asn_number
    AND own.line_identifier = requested.line_identifier LIMIT 1
) AS stored
