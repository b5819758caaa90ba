-- Inserts the parts of the shipment $2 of the merchant $1. Each part: $3 number, $4 position, $5 units, $6 cartons.
-- Leaves out parts whose number another shipment or part has. A part may have the number of its own shipment.
INSERT INTO outbound_parts (merchant, asn_number, shipment, position, units, cartons)
SELECT $1, asn_number, $2, position, units, cartons
FROM unnest($3, $4, $5, $6) AS new (asn_number, position, units, cartons)
WHERE asn_number = $2 OR NOT EXISTS (
    SELECT FROM outbound_shipments AS other
    WHERE other.merchant = $1 AND other.asn_number = new.asn_number
)
ORDER BY asn_number
ON CONFLICT ON CONSTRAINT outbound_parts_pkey DO NOTHING
