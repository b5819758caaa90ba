DROP TABLE erased_returns;
DROP TABLE exchange_orders;
DROP TABLE confirmations;
