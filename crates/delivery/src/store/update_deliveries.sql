-- Settles deliveries whose row still waits for the attempt that was made.
-- Each result: $1 id, $2 replay number, $3 attempt number, $4 time of the retry, or NULL if it is delivered or
-- dead. $5: the earliest time of a retry.
WITH given AS (
    SELECT * FROM unnest($1, $2, $3, $4) AS given (id, replay_number, number, next_attempt_at)
), final AS (
    DELETE FROM deliveries AS row WHERE row.id = ANY ($1)
    AND ((row.id, row.replay_number, row.attempts + 1) IN (
        SELECT id, replay_number, number FROM given WHERE next_attempt_at IS NULL
    )) IS TRUE
    RETURNING row.id, row.merchant, row.ordering_key
), retried AS (
    UPDATE deliveries AS row
    SET state = 'ready', attempts = given.number, releases = 0, leased_until = NULL,
        next_attempt_at = GREATEST(given.next_attempt_at, $5)
    FROM given
    WHERE row.id = ANY (ARRAY (SELECT id FROM given WHERE next_attempt_at IS NOT NULL))
    AND row.id = given.id AND row.replay_number = given.replay_number
    AND row.attempts = given.number - 1 AND given.next_attempt_at IS NOT NULL
    RETURNING row.id, row.merchant, row.ordering_key
)
SELECT *, true AS is_final FROM final UNION ALL SELECT *, false FROM retried
