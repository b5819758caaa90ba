-- Sums the guarantees of merchant $1 that started in the months from $2 to $3.
SELECT month, currency, state, sum(units)::bigint AS units,
    least(sum(amount_cents), 9223372036854775807)::bigint AS amount_cents
FROM (
    SELECT month, currency, state, units, amount_cents FROM guarantee_totals
    WHERE merchant = $1 AND month BETWEEN $2 AND $3
    UNION ALL
    SELECT month, currency, state, units, amount_cents FROM guarantee_changes
    WHERE merchant = $1 AND month BETWEEN $2 AND $3
) AS counted
GROUP BY month, currency, state HAVING sum(units) <> 0
ORDER BY month DESC, currency
