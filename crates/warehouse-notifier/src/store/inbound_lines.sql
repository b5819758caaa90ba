SELECT line, coalesce(received, 0) AS received FROM inbound_lines LEFT JOIN (
    SELECT line_identifier, count(*) AS received FROM receipts
    WHERE merchant = $1 AND asn_number = $2 AND NOT rejected GROUP BY line_identifier
) AS counted USING (line_identifier)
WHERE merchant = $1 AND asn_number = $2 ORDER BY position
