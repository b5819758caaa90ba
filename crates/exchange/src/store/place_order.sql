UPDATE exchange_orders AS own SET state = 'placed', settled_at = $2,
    exchange_order_identifier = COALESCE(NULLIF($3, own.original_order_id), 'X-' || id),
    total_amount_cents = $4, tax_amount_cents = $5, shipping_amount_cents = $6
FROM confirmations WHERE position = own.confirmation
AND own.delivery = $1 AND own.state IN ('sending', 'undeliverable', 'already_exists')
