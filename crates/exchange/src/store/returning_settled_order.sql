RETURNING own.merchant, own.original_order_id, rma_identifier, items, ordered_at,
    'X-' || id AS own_identifier, exchange_order_identifier
