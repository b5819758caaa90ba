INSERT INTO replica_merchants AS known (identifier, version, document, replicated_at)
SELECT identifier, version, document, clock_timestamp()
FROM unnest($1, $2, $3) AS new (identifier, version, document)
ON CONFLICT (identifier) DO UPDATE SET version = excluded.version,
    document = excluded.document, replicated_at = excluded.replicated_at
WHERE known.version <= excluded.version AND known.document <> excluded.document
RETURNING identifier, replicated_at
