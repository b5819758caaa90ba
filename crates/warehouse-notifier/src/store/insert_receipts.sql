-- Inserts receipts and returns the ids of the stored ones. Each receipt: $1 merchant, $2 ASN number, $3 unit
-- identifier, $4 id, $5 line identifier, $6 message, $7 rejected, $8 time. One receipt of each unit is stored: an
-- accepted one before a rejected one, then the first. It replaces a stored rejection if the unit is accepted now.
INSERT INTO receipts AS stored (merchant, asn_number, unit_identifier, id,
    line_identifier, message, rejected, received_at)
SELECT DISTINCT ON (merchant, asn_number, unit_identifier)
    merchant, asn_number, unit_identifier, id, line_identifier, message, rejected, received_at
FROM unnest((SELECT $1), $2, $3, $4, $5, $6, $7, $8) WITH ORDINALITY
    AS new (merchant, asn_number, unit_identifier, id, line_identifier, message, rejected,
        received_at, position)
ORDER BY merchant, asn_number, unit_identifier, rejected, position
ON CONFLICT ON CONSTRAINT receipts_pkey DO UPDATE SET id = excluded.id,
    line_identifier = excluded.line_identifier, message = excluded.message,
    rejected = excluded.rejected, received_at = excluded.received_at
WHERE stored.rejected AND NOT excluded.rejected RETURNING id
