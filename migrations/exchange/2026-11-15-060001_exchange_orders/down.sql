DROP TABLE erased_orders;
DROP TABLE exchange_orders;
DROP TABLE confirmations;
