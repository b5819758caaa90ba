SELECT clock_timestamp() AS now, identifiers, times, subjects, revocations FROM (
    SELECT coalesce(array_agg(identifier), '{}') AS identifiers,
        coalesce(array_agg(replicated_at), '{}') AS times
    FROM replica_merchants WHERE replicated_at >= $1
) AS merchants, (
    SELECT coalesce(array_agg(subject), '{}') AS subjects,
        coalesce(array_agg(document), '{}') AS revocations
    FROM replica_revocations WHERE replicated_at >= $1
) AS revocations
