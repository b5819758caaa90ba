DROP TABLE exchange_orders;
DROP TABLE confirmations;
