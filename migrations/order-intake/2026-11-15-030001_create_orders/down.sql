DROP FUNCTION abort_concurrent_write();
DROP TABLE order_resets;
DROP TABLE rejected_orders;
DROP TABLE order_times;
DROP TABLE order_counts;
DROP TABLE refund_lines;
DROP TABLE refunds;
DROP TABLE orders;
