SELECT service, sum(records)::bigint AS records, sum(events)::bigint AS events,
    sum(deliveries)::bigint AS deliveries, max(confirmed_at) AS confirmed_at
FROM erasure_confirmations JOIN erasures ON id = erasure
WHERE erasure = $1 AND state <> 'running' GROUP BY service, batches
HAVING count(*) = batches ORDER BY service
