-- Finds the returns ($1 merchants, $2 identifiers) whose units the shopper keeps.
SELECT kept.* FROM unnest((SELECT $1), $2) AS requested (merchant, rma_identifier), LATERAL (
    SELECT merchant, rma_identifier, created_at FROM returns AS own
    WHERE own.merchant = requested.merchant AND own.rma_identifier = requested.rma_identifier
        AND own.document::json ->> 'return_method' = 'customer-keep'
    OFFSET 0
) AS kept
