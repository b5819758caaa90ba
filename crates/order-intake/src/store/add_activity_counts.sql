-- Adds to the counts of the merchant $1, by hour ($2): $3 received, $4 changed and $5 rejected orders. Deletes counts
-- that are two days older than the newest of these hours or the database's clock, whichever is earlier.
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
