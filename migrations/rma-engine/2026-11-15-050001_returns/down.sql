DROP TABLE discrepancies;
DROP TABLE lookup_failures;
DROP TABLE timeline;
DROP FUNCTION reject_timeline_change;
DROP TABLE return_units;
DROP TABLE returns;
DROP TABLE exchange_orders;
DROP TABLE orders;
