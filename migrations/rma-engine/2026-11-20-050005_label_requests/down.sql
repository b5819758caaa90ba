DROP TABLE label_requests;
