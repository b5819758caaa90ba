DROP FUNCTION abort_concurrent_write();
DROP TABLE refund_lines;
DROP TABLE refunds;
DROP TABLE orders;
