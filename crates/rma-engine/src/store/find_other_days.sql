-- Finds deadlines of kind $3 that were computed with other days than the settings ($1 merchants, $2 days) have, at most
-- $4 of each merchant and together.
SELECT found.* FROM unnest((SELECT $1), $2) AS setting (merchant, days), LATERAL (
    (SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines AS own
     WHERE own.merchant = setting.merchant AND own.kind = $3 AND own.days < setting.days
     ORDER BY own.days LIMIT $4)
    UNION ALL
    (SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines AS own
     WHERE own.merchant = setting.merchant AND own.kind = $3 AND own.days > setting.days
     ORDER BY own.days LIMIT $4)
) AS found LIMIT $4
