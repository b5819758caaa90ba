DROP TABLE answered_requests;
