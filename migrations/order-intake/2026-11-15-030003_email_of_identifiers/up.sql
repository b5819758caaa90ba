-- A shopper's address may be the identifier and stand nowhere else.
UPDATE orders SET customer_email = lower(identified.by)
FROM (
    SELECT merchant, identifier, coalesce(
        document::json #>> '{customer,identifier}',
        document::json #>> '{the service,identifier}'
    ) AS by
    FROM orders WHERE customer_email IS NULL
) AS identified
WHERE orders.merchant = identified.merchant AND orders.identifier = identified.identifier
    AND orders.customer_email IS NULL AND identified.by LIKE '%@%';
