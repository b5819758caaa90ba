SELECT count(*) AS n FROM (
    SELECT FROM published_events WHERE published_at >= $1 AND published_at < $2
    AND (routing_key = ANY ($3) OR cardinality($3) = 0 AND routing_key <> ALL ($4)) LIMIT $5
) AS counted
