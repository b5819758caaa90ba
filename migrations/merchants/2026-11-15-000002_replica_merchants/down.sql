DROP TABLE replica_revocations;
DROP TABLE replica_merchants;
