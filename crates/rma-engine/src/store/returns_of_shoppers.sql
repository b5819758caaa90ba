-- The times at which shoppers started returns, without canceled and declined ones: $1 merchants, $2 e-mail addresses in lower case, $3 the
-- earliest times, $4 the most returns of a shopper that are read.
SELECT wanted.place, newest.created_at
FROM unnest((SELECT $1), $2, $3) WITH ORDINALITY AS wanted (merchant, email, since, place), LATERAL (
    SELECT own.created_at, own.status
    FROM returns AS own
    WHERE own.merchant = wanted.merchant
        AND own.customer_email = wanted.email
        AND own.created_at > wanted.since
    ORDER BY own.created_at DESC, own.rma_identifier DESC
    LIMIT $4
) AS newest
WHERE newest.status NOT IN ('CANCELED', 'DECLINED')
