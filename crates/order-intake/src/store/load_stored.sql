-- Loads the versions of stored orders ($1 merchants, $2 identifiers), refunds ($3, $4) and refund lines ($5, $6).
-- position: the place of the key in its arrays. parent_digest: the order of a refund, the refund of a line.
SELECT 1 AS kind, position, updated_at, digest, NULL AS parent_digest
FROM unnest($1, $2) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL (
    SELECT updated_at, digest FROM orders
    WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1
) AS orders
UNION ALL
SELECT 2, position, NULL, digest, order_digest
FROM unnest($3, $4) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL (
    SELECT order_digest, digest FROM refunds
    WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1
) AS refunds
UNION ALL
SELECT 3, position, NULL, NULL, refund_digest
FROM unnest($5, $6) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL (
    SELECT refund_digest FROM refund_lines
    WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1
) AS refund_lines
