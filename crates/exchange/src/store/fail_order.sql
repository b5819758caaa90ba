UPDATE exchange_orders AS own SET state = $4, settled_at = $2
FROM confirmations WHERE position = own.confirmation
AND own.delivery = $1 AND own.state = ANY ($3)
