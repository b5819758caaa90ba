DROP TABLE directory_revocations;
DROP TABLE directory_merchants;
