WITH deleted AS (
    DELETE FROM order_counts WHERE merchant = $1
        AND hour < LEAST((SELECT max(hour) FROM unnest($2) AS new (hour)), now())
            - INTERVAL '48 hours'
)
INSERT INTO order_counts AS stored (merchant, hour, received, changed, rejected)
SELECT $1, * FROM unnest($2, $3, $4, $5)
ON CONFLICT ON CONSTRAINT order_counts_pkey DO UPDATE SET
    received = stored.received + excluded.received,
    changed = stored.changed + excluded.changed,
    rejected = stored.rejected + excluded.rejected
