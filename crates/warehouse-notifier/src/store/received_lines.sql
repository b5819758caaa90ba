-- Finds the receipts of units of the merchant $1 ($2 ASN numbers, $3 unit identifiers), each with the line of the
-- inbound ASN against which it was received.
SELECT received.asn_number, received.unit_identifier, expected.line
FROM unnest((SELECT $2), $3) AS requested (asn_number, unit_identifier), LATERAL (
    SELECT asn_number, unit_identifier, line_identifier FROM receipts AS own
    WHERE own.merchant = $1 AND own.asn_number = requested.asn_number
    AND own.unit_identifier = requested.unit_identifier LIMIT 1
) AS received, LATERAL (
    SELECT line FROM inbound_lines AS own
    WHERE own.merchant = $1 AND own.asn_number = received.asn_number
    AND own.line_identifier = received.line_identifier LIMIT 1
) AS expected
