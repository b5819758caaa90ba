-- This service's copy of what auth says: merchants, whole, and what was revoked.
CREATE TABLE replica_merchants (
    identifier TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    document JSONB NOT NULL,
    replicated_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX replica_merchants_copied_at ON replica_merchants (replicated_at);

CREATE TABLE replica_revocations (
    subject TEXT PRIMARY KEY,
    revocation JSONB NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    replicated_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX replica_revocations_copied_at ON replica_revocations (replicated_at);
CREATE INDEX replica_revocations_expires_at ON replica_revocations (expires_at);
