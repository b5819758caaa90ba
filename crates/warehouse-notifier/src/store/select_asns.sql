SELECT merchant, header, lines, units, digest, created_at, updated_at, (
    SELECT count(*) FROM (
        SELECT FROM receipts
        WHERE receipts.merchant = asns.merchant AND receipts.asn_number = asns.asn_number
        AND NOT receipts.rejected LIMIT {most}
    ) AS counted
) AS received
FROM inbound_asns AS asns
