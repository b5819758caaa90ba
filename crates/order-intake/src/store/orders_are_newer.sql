-- A part of the statement of write.rs: the condition that every order is new or newer. $5 to $17: order_columns.rs.
NOT EXISTS (
    SELECT FROM unnest($5, $6, $11, $12) AS new (merchant, identifier, updated_at, digest),
    LATERAL (
        SELECT FROM orders
        WHERE merchant = new.merchant AND identifier = new.identifier
            AND (updated_at > new.updated_at OR digest = new.digest) LIMIT 1
    ) AS newer_or_same
)
