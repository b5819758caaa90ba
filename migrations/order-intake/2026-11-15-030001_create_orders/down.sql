DROP TABLE stale_snapshots;
DROP TABLE refunds;
DROP TABLE orders;
