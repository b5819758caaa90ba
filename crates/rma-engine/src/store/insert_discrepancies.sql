INSERT INTO discrepancies (merchant, at, kind, order_identifier, rma_identifier, detail,
    fingerprint)
SELECT merchant, $7, kind, order_identifier, rma_identifier, detail, fingerprint
FROM unnest($1, $2, $3, $4, $5, $6) AS new (merchant, kind, order_identifier,
    rma_identifier, detail, fingerprint)
ON CONFLICT ON CONSTRAINT discrepancies_once DO NOTHING
