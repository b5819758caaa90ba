DROP FUNCTION abort_concurrent_write();
DROP TABLE stale_snapshots;
DROP TABLE refunds;
DROP TABLE orders;
