-- Checks the next $4 blocked deliveries after merchant $1, kind $2, id $3, and makes those ready that are the first
-- of their ordering key, due at $5 at the earliest. Returns the last checked delivery and two counts.
WITH blocked AS MATERIALIZED (
    SELECT merchant, kind, id, ordering_key, sequence FROM deliveries
    WHERE state = 'blocked' AND (merchant, kind, id) > ($1, $2, $3)
    ORDER BY merchant, kind, id LIMIT $4
), first AS (
    SELECT id FROM blocked WHERE (
        SELECT true FROM deliveries AS earlier
        WHERE earlier.merchant = blocked.merchant
        AND earlier.ordering_key = blocked.ordering_key AND earlier.sequence < blocked.sequence
        ORDER BY earlier.sequence LIMIT 1
    ) IS NOT TRUE
), locked AS MATERIALIZED (
    SELECT id FROM deliveries
    WHERE id = ANY (ARRAY (SELECT id FROM first)) AND (state = 'blocked') IS TRUE
    FOR NO KEY UPDATE SKIP LOCKED
), unblocked AS (
    UPDATE deliveries SET state = 'ready', next_attempt_at = GREATEST(next_attempt_at, $5)
    WHERE id = ANY (ARRAY (SELECT id FROM locked)) AND (state = 'blocked') IS TRUE
    RETURNING id
)
SELECT merchant, kind, id, (SELECT count(*) FROM blocked) AS checked,
(SELECT count(*) FROM unblocked) AS unblocked
FROM blocked ORDER BY merchant DESC, kind DESC, id DESC LIMIT 1
