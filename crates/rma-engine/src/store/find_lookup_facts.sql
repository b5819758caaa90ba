-- Finds the document of order $2 of merchant $1, and since when look-ups are limited: since the failure after $4
-- that has $6 newer ones of the order (digest $8), or $7 newer ones from the address $3. The row $5 of this look-up
-- does not count.
SELECT
(SELECT document FROM orders WHERE merchant = $1 AND identifier = $2) AS document,
greatest(
    (SELECT at FROM lookup_failures
     WHERE merchant = $1 AND order_digest = $8 AND at > $4 AND position <> $5
     ORDER BY at DESC OFFSET $6 LIMIT 1),
    (SELECT at FROM lookup_failures
     WHERE address = $3 AND at > $4 AND position <> $5
     ORDER BY at DESC OFFSET $7 LIMIT 1)
) AS limited_since
