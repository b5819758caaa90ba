-- Deletes the failed look-ups of orders of the merchant $1 ($2 digests of the orders) from before $3.
DELETE FROM lookup_failures WHERE position = ANY (ARRAY (
    SELECT failure.position FROM unnest($2) AS wanted (digest), LATERAL (
        SELECT position FROM lookup_failures AS own WHERE own.merchant = $1
        AND own.order_digest = wanted.digest AND (own.at < $3) IS TRUE OFFSET 0
    ) AS failure
))
