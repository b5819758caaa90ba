-- Reads up to $4 events after the position $1 (time), $2 (sequence number) and before $3, up to $5 bytes.
SELECT published_at, sequence, event_id, routing_key, event, created_at FROM (
    SELECT *, sum(octet_length(event)) OVER (ORDER BY published_at, sequence)
        - octet_length(event) AS bytes_before
    FROM (
        SELECT * FROM published_events
        WHERE published_at >= $1 AND (published_at, sequence) > ($1, $2)
        AND published_at < $3
        ORDER BY published_at, sequence LIMIT $4
    ) AS batch
) AS batch
WHERE bytes_before < $5 ORDER BY published_at, sequence
