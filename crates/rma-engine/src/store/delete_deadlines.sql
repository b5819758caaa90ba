-- Deletes deadlines ($1 merchants, $2 identifiers of returns, $3 kinds).
DELETE FROM return_deadlines WHERE ctid = ANY (ARRAY (
    SELECT found.ctid FROM unnest((SELECT $1), $2, $3) AS gone (merchant, rma_identifier, kind), LATERAL (
        SELECT own.ctid FROM return_deadlines AS own
        WHERE own.rma_identifier = gone.rma_identifier AND own.merchant = gone.merchant
            AND own.kind = gone.kind OFFSET 0
    ) AS found
))
