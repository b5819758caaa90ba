-- Locks or finds the returns that are named ($1 merchants, $2 identifiers) or have units in parcels ($3 merchants,
-- $4 numbers). In a batch, a return has no document if it or its counter is locked, and none has one if they have
-- more than $5 bytes together.
WITH requested (merchant, rma_identifier) AS (
    SELECT * FROM unnest((SELECT $1), $2)
    UNION SELECT found.* FROM unnest((SELECT $3), $4) AS parcel (merchant, number), LATERAL (
        SELECT merchant, rma_identifier FROM return_units AS own
        WHERE own.merchant = parcel.merchant AND own.tracking_number = parcel.number
            AND (held OR expired) OFFSET 0
    ) AS found
), sorted AS (
    SELECT * FROM requested ORDER BY merchant, rma_identifier
)
SELECT sorted.merchant,
    CASE WHEN counter.is_free AND sum(octet_length(locked.document)) OVER () <= $5
        THEN locked.document END AS document
FROM sorted LEFT JOIN LATERAL (
    SELECT document FROM returns AS own
    WHERE own.merchant = sorted.merchant AND own.rma_identifier = sorted.rma_identifier
    {lock}
) AS locked ON true
LEFT JOIN LATERAL ({counter}) AS counter ON locked.document IS NOT NULL
