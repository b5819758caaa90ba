-- For operators, who look at every merchant's.
CREATE INDEX confirmations_of_all ON confirmations (state, position);
