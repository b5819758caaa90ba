-- Counts events published from $1 until $2, of the types $3, or if there are none of all, up to $4.
SELECT count(*) AS n FROM (
    SELECT FROM published_events WHERE published_at >= $1 AND published_at < $2
    AND (routing_key = ANY ($3) OR cardinality($3) = 0) LIMIT $4
) AS counted
