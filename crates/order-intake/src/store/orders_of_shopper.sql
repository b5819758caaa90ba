(SELECT identifier FROM orders WHERE customer_email = $2 AND merchant = $1
ORDER BY identifier LIMIT $4)
UNION
(SELECT order_identifier FROM erasures JOIN erasure_orders ON erasure = id
WHERE merchant = $1 AND email_sha256 = $3 ORDER BY order_identifier LIMIT $4)
ORDER BY identifier LIMIT $4
