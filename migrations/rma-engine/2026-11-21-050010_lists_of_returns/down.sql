DROP TABLE return_skus;
DROP TABLE return_work_lists;
ALTER TABLE returns
    DROP COLUMN last_delivery, DROP COLUMN amount_cents, DROP COLUMN facts;
