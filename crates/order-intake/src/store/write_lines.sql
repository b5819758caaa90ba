-- A part of the statement of write.rs: writes the lines of the orders that were stored.
new_lines AS (
    INSERT INTO order_lines (line_identifier, merchant, order_identifier)
    SELECT line, merchant, identifier FROM stored, unnest(line_identifiers) AS line
    ON CONFLICT DO NOTHING
), old_lines AS (
    SELECT line.ctid AS place FROM stored, LATERAL (
        SELECT line_identifiers FROM orders
        WHERE merchant = stored.merchant AND identifier = stored.identifier
            AND line_identifiers <> stored.line_identifiers LIMIT 1
    ) AS old, LATERAL (
        SELECT unnest(old.line_identifiers) EXCEPT SELECT unnest(stored.line_identifiers)
    ) AS removed (identifier), LATERAL (
        SELECT ctid FROM order_lines
        WHERE line_identifier = removed.identifier AND merchant = stored.merchant
            AND order_identifier = stored.identifier LIMIT 1
    ) AS line
    WHERE stored.is_replaced
), removed_lines AS (
    DELETE FROM order_lines WHERE (SELECT EXISTS (SELECT FROM old_lines))
        AND ctid = ANY (ARRAY (SELECT place FROM old_lines))
)
