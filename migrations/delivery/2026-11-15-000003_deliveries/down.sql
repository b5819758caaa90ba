DROP TABLE delivery_replays;
DROP TABLE delivery_latencies;
DROP TABLE delivery_counts;
DROP TABLE delivery_endpoints;
DROP TABLE delivery_ordering_keys;
DROP TABLE deliveries;
DROP TABLE delivery_attempts;
DROP TABLE delivery_messages;
