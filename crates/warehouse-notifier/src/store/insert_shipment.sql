INSERT INTO outbound_shipments
    (merchant, asn_number, shipment_type, header, units, digest, created_at, updated_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $7
WHERE NOT EXISTS (SELECT FROM outbound_parts WHERE merchant = $1 AND asn_number = $2)
ON CONFLICT ON CONSTRAINT outbound_shipments_pkey DO NOTHING
