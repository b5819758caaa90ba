-- Reads up to $2 events from sequence number $1 on, and those with the skipped numbers $4, up to $3 bytes. The events
-- $5 are published and wait to be moved.
SELECT sequence, event_id, routing_key, event, created_at FROM (
    SELECT *, sum(octet_length(event)) OVER (ORDER BY sequence)
        - octet_length(event) AS bytes_before
    FROM (
        SELECT * FROM outbox WHERE sequence = ANY ($4) AND sequence <> ALL ($5)
        UNION ALL
        (SELECT * FROM outbox WHERE sequence >= $1 AND sequence <> ALL ($5)
            ORDER BY sequence LIMIT $2)
        ORDER BY sequence LIMIT $2
    ) AS batch
) AS batch
WHERE bytes_before < $3 ORDER BY sequence
