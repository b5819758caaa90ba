DROP TABLE merchant_policy_versions;
