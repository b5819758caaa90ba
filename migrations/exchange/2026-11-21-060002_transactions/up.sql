-- Merchants report and reconcile payments by the transaction of an exchange order.
CREATE INDEX exchange_orders_by_transaction ON exchange_orders (transaction_id, merchant);
