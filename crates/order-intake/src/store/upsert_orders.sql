-- A part of the statement of write.rs: writes the orders. $5 to $17: order_columns.rs.
INSERT INTO orders (merchant, identifier, status, customer_email,
    line_identifiers, created_at, updated_at, digest, document, received_at)
SELECT merchant, identifier, status, customer_email, string_to_array(lines, $17),
    created_at, updated_at, digest, document, received_at
FROM unnest($5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS new (merchant, identifier,
    status, customer_email, lines, created_at, updated_at, digest, document, received_at)
WHERE (SELECT holds FROM precondition)
ON CONFLICT ON CONSTRAINT orders_pkey DO UPDATE SET
    status = excluded.status, customer_email = excluded.customer_email,
    line_identifiers = excluded.line_identifiers, created_at = excluded.created_at,
    updated_at = excluded.updated_at, digest = excluded.digest,
    document = excluded.document, received_at = excluded.received_at, erased_at = NULL
