-- Replica of auth's merchants. `document` is the merchant as auth published it.
CREATE TABLE replica_merchants (
    identifier TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    document JSONB NOT NULL,
    replicated_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX replica_merchants_replicated_at ON replica_merchants (replicated_at);

-- Replica of auth's revocations of tokens and clients, until they expire.
CREATE TABLE replica_revocations (
    subject TEXT PRIMARY KEY,
    document JSONB NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    replicated_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX replica_revocations_replicated_at ON replica_revocations (replicated_at);
CREATE INDEX replica_revocations_expires_at ON replica_revocations (expires_at);
