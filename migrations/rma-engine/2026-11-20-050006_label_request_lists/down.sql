DROP INDEX label_requests_of_all_by_state;
DROP INDEX label_requests_of_all;
DROP INDEX label_requests_by_state;
