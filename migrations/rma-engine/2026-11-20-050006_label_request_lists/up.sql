-- Lists of label requests by state. Ids sort by time.
CREATE INDEX label_requests_by_state ON label_requests (merchant, state, id);
-- For lists of all merchants, with the same condition as those of returns.
CREATE INDEX label_requests_of_all ON label_requests (id) WHERE merchant IS DISTINCT FROM '';
CREATE INDEX label_requests_of_all_by_state ON label_requests (state, id)
    WHERE merchant IS DISTINCT FROM '';
-- Created last again: while the table is empty, PostgreSQL takes the newest index that it can use.
ALTER TABLE label_requests DROP CONSTRAINT label_requests_pkey;
ALTER TABLE label_requests ADD CONSTRAINT label_requests_pkey PRIMARY KEY (merchant, id);
