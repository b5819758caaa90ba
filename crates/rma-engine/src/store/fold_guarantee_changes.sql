-- Moves the oldest $1 changes to the sums.
WITH folded AS (
    DELETE FROM guarantee_changes WHERE position = ANY (ARRAY (
        SELECT position FROM guarantee_changes ORDER BY position LIMIT $1 FOR UPDATE SKIP LOCKED
    )) RETURNING merchant, month, currency, state, units, amount_cents
), summed AS (
    INSERT INTO guarantee_totals AS total (merchant, month, currency, state, units, amount_cents)
    SELECT merchant, month, currency, state, sum(units), sum(amount_cents)
    FROM folded GROUP BY merchant, month, currency, state
    ON CONFLICT ON CONSTRAINT guarantee_totals_pkey DO UPDATE SET
        units = total.units + excluded.units, amount_cents = total.amount_cents + excluded.amount_cents
)
SELECT count(*) AS changes FROM folded
