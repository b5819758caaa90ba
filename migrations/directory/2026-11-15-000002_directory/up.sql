-- This service's copy of what auth says: merchants, whole, and what was revoked.
CREATE TABLE directory_merchants (
    identifier TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    document JSONB NOT NULL,
    copied_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX directory_merchants_copied_at ON directory_merchants (copied_at);

CREATE TABLE directory_revocations (
    subject TEXT PRIMARY KEY,
    revocation JSONB NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    copied_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX directory_revocations_copied_at ON directory_revocations (copied_at);
CREATE INDEX directory_revocations_expires_at ON directory_revocations (expires_at);
