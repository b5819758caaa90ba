SELECT stored.document FROM unnest($1, $2) WITH ORDINALITY
    AS requested (merchant, rma_identifier, place), LATERAL (
    SELECT document FROM returns AS own
    WHERE own.merchant = requested.merchant AND own.rma_identifier = requested.rma_identifier
    OFFSET 0
) AS stored ORDER BY requested.place
