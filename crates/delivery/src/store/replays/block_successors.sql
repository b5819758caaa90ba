-- Blocks ready deliveries behind the messages $1, which are about to be ready again. Returns their ordering keys.
UPDATE deliveries SET state = 'blocked' WHERE id = ANY (ARRAY (
    SELECT later.id FROM delivery_messages AS m, LATERAL (
        SELECT id, state FROM deliveries AS later
        WHERE later.merchant = m.merchant AND later.ordering_key = m.ordering_key
        AND later.sequence > m.sequence ORDER BY later.sequence OFFSET 0
    ) AS later WHERE m.id = ANY ($1) AND later.state = 'ready'
)) AND (state = 'ready') IS TRUE RETURNING merchant, ordering_key
