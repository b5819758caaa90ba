INSERT INTO order_times AS stored
    (merchant, oldest_created_at, newest_created_at, first_received_at, last_received_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT ON CONSTRAINT order_times_pkey DO UPDATE SET
    oldest_created_at = least(stored.oldest_created_at, excluded.oldest_created_at),
    newest_created_at = greatest(stored.newest_created_at, excluded.newest_created_at),
    first_received_at = least(stored.first_received_at, excluded.first_received_at),
    last_received_at = greatest(stored.last_received_at, excluded.last_received_at)
