-- An operator may end an order that the merchant did not take.
ALTER TABLE exchange_orders
    DROP CONSTRAINT exchange_orders_state,
    ADD CONSTRAINT exchange_orders_state
        CHECK (state IN ('sending', 'placed', 'undeliverable', 'abandoned'));
