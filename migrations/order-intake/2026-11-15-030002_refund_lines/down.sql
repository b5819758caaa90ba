DROP TABLE refund_lines;
