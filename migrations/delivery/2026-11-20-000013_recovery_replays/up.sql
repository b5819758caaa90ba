-- An endpoint has at most one unfinished replay that its recovery started.
CREATE UNIQUE INDEX delivery_replays_recovery
ON delivery_replays ((filter ->> 'merchant'), (filter ->> 'kind'))
WHERE requested_by = 'recovery' AND state IN ('running', 'paused');
