UPDATE exchange_orders AS own SET state = 'abandoned', settled_at = $2,
    abandoned_by = $3, abandon_note = $4
FROM confirmations WHERE position = own.confirmation
AND own.delivery = $1 AND own.state IN ('undeliverable', 'already_exists')
