-- Finds deadlines of kind $4 that were computed with other days, or in another time zone, than the settings
-- ($1 merchants, $2 days, $3 zones) have, at most $5 of each merchant and together.
SELECT found.* FROM unnest((SELECT $1), $2, $3) AS setting (merchant, days, zone), LATERAL (
    (SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines AS own
     WHERE own.merchant = setting.merchant AND own.kind = $4 AND own.days < setting.days
     ORDER BY own.days LIMIT $5)
    UNION ALL
    (SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines AS own
     WHERE own.merchant = setting.merchant AND own.kind = $4 AND own.days > setting.days
     ORDER BY own.days LIMIT $5)
    UNION ALL
    (SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines AS own
     WHERE own.merchant = setting.merchant AND own.kind = $4 AND own.days = setting.days
         AND own.zone < setting.zone
     ORDER BY own.zone LIMIT $5)
    UNION ALL
    (SELECT merchant, rma_identifier, kind, started_at FROM return_deadlines AS own
     WHERE own.merchant = setting.merchant AND own.kind = $4 AND own.days = setting.days
         AND own.zone > setting.zone
     ORDER BY own.zone LIMIT $5)
) AS found LIMIT $5
