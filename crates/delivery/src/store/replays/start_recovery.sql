-- Starts the replay of an endpoint that recovered ($1 id, $2 filter, $3 messages per second, $4 matches, $5 time). If the
-- endpoint has an unfinished one, that begins again with this filter, and stays paused if it is.
INSERT INTO delivery_replays AS stored
(id, requested_by, filter, force, per_second, state, matched, last_delivery_id, replayed, skipped, failed,
created_at, advanced_at)
VALUES ($1, 'recovery', $2, false, $3, 'running', $4, '00000000-0000-0000-0000-000000000000', 0, 0, 0,
$5, $5 - INTERVAL '1 second')
ON CONFLICT ((filter ->> 'merchant'), (filter ->> 'kind'))
WHERE requested_by = 'recovery' AND state IN ('running', 'paused')
DO UPDATE SET filter = excluded.filter, last_delivery_id = excluded.last_delivery_id,
matched = stored.replayed + stored.skipped + stored.failed + excluded.matched
RETURNING stored.id
