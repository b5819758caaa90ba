-- Merchants are changed and published as a whole, so each is one document. Secrets in it are encrypted.
CREATE TABLE merchants (
    identifier TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    document JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- Searches of the words in identifiers and names.
CREATE INDEX merchants_words ON merchants
USING gin (to_tsvector('simple', identifier || ' ' || (document #>> '{settings,name}')));

-- The host names of the merchants' portals. The merchant's document has them too; this table makes them
-- unique.
CREATE TABLE host_names (
    host_name TEXT PRIMARY KEY,
    merchant TEXT NOT NULL CONSTRAINT host_names_merchant_fkey REFERENCES merchants (identifier)
);

CREATE INDEX host_names_merchant ON host_names (merchant);

-- API clients. Clients of warehouses, carriers, portals and operators have no merchant.
CREATE TABLE clients (
    id TEXT PRIMARY KEY,
    merchant TEXT CONSTRAINT clients_merchant_fkey REFERENCES merchants (identifier),
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ,
    -- The latest token request, to within a minute.
    last_used_at TIMESTAMPTZ
);

CREATE INDEX clients_merchant ON clients (merchant, id);

CREATE TABLE client_secrets (
    id UUID PRIMARY KEY,
    client_id TEXT NOT NULL CONSTRAINT client_secrets_client_fkey REFERENCES clients (id),
    hash BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    -- The latest token request with this secret, to within a minute.
    last_used_at TIMESTAMPTZ
);

CREATE INDEX client_secrets_client ON client_secrets (client_id);

-- People who sign in to the console. A person from the identity provider has no password.
CREATE TABLE people (
    -- In lower case.
    email TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    merchant TEXT CONSTRAINT people_merchant_fkey REFERENCES merchants (identifier),
    state TEXT NOT NULL,
    -- Argon2id in the PHC format.
    password_hash TEXT,
    -- Encrypted.
    totp_secret TEXT,
    -- The time step of the last accepted code. A code of this or an earlier step is refused.
    totp_step BIGINT,
    -- Wrong codes in a row after the right password.
    wrong_codes INTEGER NOT NULL DEFAULT 0,
    -- `iss` and `sub` of the identity provider, once the person signed in with it.
    oidc_issuer TEXT,
    oidc_subject TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    last_signed_in_at TIMESTAMPTZ,
    -- The address of the last sign-in. Failures from other addresses do not lock it out.
    last_address TEXT,
    CONSTRAINT people_role CHECK (role IN ('operator', 'support', 'merchant-admin', 'merchant-viewer')),
    CONSTRAINT people_role_merchant CHECK ((merchant IS NOT NULL) = (role IN ('merchant-admin', 'merchant-viewer'))),
    CONSTRAINT people_oidc_key UNIQUE (oidc_issuer, oidc_subject),
    CONSTRAINT people_state CHECK (state IN ('invited', 'active', 'disabled')),
    -- An operator with a password also needs a second factor.
    CONSTRAINT people_operator_totp CHECK (role <> 'operator' OR password_hash IS NULL OR totp_secret IS NOT NULL)
);

CREATE INDEX people_merchant ON people (merchant, email);
CREATE INDEX people_operators ON people (email) WHERE role = 'operator' AND state = 'active';

-- Codes that replace a TOTP code once. A used code is deleted.
CREATE TABLE recovery_codes (
    person TEXT NOT NULL CONSTRAINT recovery_codes_person_fkey REFERENCES people (email),
    hash BYTEA NOT NULL,
    PRIMARY KEY (person, hash)
);

-- Invitations that were not used yet. A person has at most one.
CREATE TABLE invitations (
    person TEXT PRIMARY KEY CONSTRAINT invitations_person_fkey REFERENCES people (email),
    token_hash BYTEA NOT NULL CONSTRAINT invitations_token_hash_key UNIQUE,
    expires_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX invitations_expires_at ON invitations (expires_at);

-- Sessions of people. A session that ended is deleted.
CREATE TABLE sessions (
    id UUID PRIMARY KEY,
    person TEXT NOT NULL CONSTRAINT sessions_person_fkey REFERENCES people (email),
    token_hash BYTEA NOT NULL CONSTRAINT sessions_token_hash_key UNIQUE,
    created_at TIMESTAMPTZ NOT NULL,
    -- Written at most once a minute.
    last_used_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    address TEXT NOT NULL,
    user_agent TEXT,
    -- Wrong passwords and codes with which the session tried to change credentials.
    refusals INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX sessions_person ON sessions (person, created_at);
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- Keys that sign tokens. A key is published from its creation until the tokens that it signed have expired.
CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    private_key TEXT NOT NULL,
    public_key JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    activates_at TIMESTAMPTZ NOT NULL
);

-- Revoked clients, tokens and sessions.
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

-- An index for every combination of filters, in the order of the list. Changes are rare, so inserts may cost
-- more than searches.
CREATE INDEX audit_records_time ON audit_records (created_at, id);
CREATE INDEX audit_records_merchant ON audit_records (merchant, created_at, id);
CREATE INDEX audit_records_actor ON audit_records (actor, created_at, id);
CREATE INDEX audit_records_action ON audit_records (action, created_at, id);
CREATE INDEX audit_records_merchant_actor ON audit_records (merchant, actor, created_at, id);
CREATE INDEX audit_records_merchant_action ON audit_records (merchant, action, created_at, id);
CREATE INDEX audit_records_actor_action ON audit_records (actor, action, created_at, id);
CREATE INDEX audit_records_all_filters ON audit_records (merchant, actor, action, created_at, id);
