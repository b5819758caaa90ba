-- Moves locked deadlines ($1 merchants, $2 identifiers of returns, $3 kinds) to the time $4.
UPDATE return_deadlines SET due_at = $4 WHERE ctid = ANY (ARRAY (
    SELECT found.ctid FROM unnest((SELECT $1), $2, $3) AS postponed (merchant, rma_identifier, kind), LATERAL (
        SELECT own.ctid FROM return_deadlines AS own
        WHERE own.rma_identifier = postponed.rma_identifier AND own.merchant = postponed.merchant
            AND own.kind = postponed.kind OFFSET 0
    ) AS found
))
