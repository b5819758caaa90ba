-- A part of place_order.sql, fail_order.sql and abandon_order.sql.
RETURNING own.merchant, own.original_order_id, rma_identifier, items, ordered_at,
    'X-' || id AS own_identifier, exchange_order_identifier
