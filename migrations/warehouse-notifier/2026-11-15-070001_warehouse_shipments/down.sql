DROP TABLE record_keys;
DROP TABLE drop_shipments;
DROP TABLE drop_orders;
DROP TABLE outbound_parts;
DROP TABLE outbound_shipments;
DROP TABLE receipts;
DROP TABLE inbound_lines;
DROP TABLE inbound_asns;
