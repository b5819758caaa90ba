-- A part of the statement of search.rs: the tables of a search by a line.
order_lines AS line (line_identifier, merchant, identifier), LATERAL (
    SELECT status, created_at, updated_at, received_at, document FROM orders
    WHERE orders.merchant = line.merchant AND orders.identifier = line.identifier
        AND line.line_identifier = ANY (orders.line_identifiers) LIMIT 1
) AS found
