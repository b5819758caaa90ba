DROP TABLE exchange_orders;
DROP TABLE orders;
