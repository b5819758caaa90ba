-- Locks the counters of the ordering keys of the messages $1, in the order in which appends lock them.
SELECT FROM (
    SELECT merchant, ordering_key FROM delivery_messages
    WHERE id = ANY ($1) AND ordering_key IS NOT NULL GROUP BY merchant, ordering_key
    ORDER BY merchant COLLATE "C", ordering_key COLLATE "C"
) AS key, LATERAL (
    SELECT FROM delivery_ordering_keys AS counter
    WHERE counter.merchant = key.merchant AND counter.ordering_key = key.ordering_key FOR UPDATE
) AS counter
