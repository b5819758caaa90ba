DROP TABLE audit_records;
DROP TABLE revocations;
DROP TABLE signing_keys;
DROP TABLE client_secrets;
DROP TABLE clients;
DROP TABLE merchants;
