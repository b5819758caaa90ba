-- Merchants are changed and published as a whole, so each is one document. Secrets in it are encrypted.
CREATE TABLE merchants (
    identifier TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    document JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- API clients. Clients of warehouses, carriers and operators have no merchant.
CREATE TABLE clients (
    id TEXT PRIMARY KEY,
    merchant TEXT CONSTRAINT clients_merchant_fkey REFERENCES merchants (identifier),
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ
);

CREATE INDEX clients_merchant ON clients (merchant, id);

CREATE TABLE client_secrets (
    id UUID PRIMARY KEY,
    client_id TEXT NOT NULL CONSTRAINT client_secrets_client_fkey REFERENCES clients (id),
    hash BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ
);

CREATE INDEX client_secrets_client ON client_secrets (client_id);

-- Keys that sign tokens. A key is published from its creation until the tokens that it signed have expired.
CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    private_key TEXT NOT NULL,
    public_key JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    activates_at TIMESTAMPTZ NOT NULL
);

-- Revoked clients and tokens.
CREATE TABLE revocations (
    subject TEXT PRIMARY KEY,
    revocation JSONB NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    -- By the database's clock, so that replicas can poll for new rows.
    created_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX revocations_created_at ON revocations (created_at);
CREATE INDEX revocations_expires_at ON revocations (expires_at);

-- The audit log: every change with its author. Rows are never changed.
CREATE TABLE audit_records (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at TIMESTAMPTZ NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    merchant TEXT,
    detail JSONB NOT NULL
);

CREATE INDEX audit_records_merchant ON audit_records (merchant, id);
