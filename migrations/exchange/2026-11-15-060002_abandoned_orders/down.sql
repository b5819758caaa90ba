UPDATE exchange_orders SET state = 'undeliverable' WHERE state = 'abandoned';

ALTER TABLE exchange_orders
    DROP CONSTRAINT exchange_orders_state,
    ADD CONSTRAINT exchange_orders_state CHECK (state IN ('sending', 'placed', 'undeliverable'));
