//! The tables of `migrations/auth`.

diesel::table! {
    merchants (identifier) {
        identifier -> Text,
        version -> Int8,
        document -> Jsonb,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    merchant_policy_versions (merchant, version) {
        merchant -> Text,
        version -> Int8,
        created_at -> Timestamptz,
        actor -> Text,
        rules -> Jsonb,
    }
}

diesel::table! {
    host_names (host_name) {
        host_name -> Text,
        merchant -> Text,
    }
}

diesel::table! {
    clients (id) {
        id -> Text,
        merchant -> Nullable<Text>,
        name -> Text,
        scopes -> Text,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
        last_used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    client_secrets (id) {
        id -> Uuid,
        client_id -> Text,
        hash -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        last_used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    people (email) {
        email -> Text,
        name -> Text,
        role -> Text,
        merchant -> Nullable<Text>,
        state -> Text,
        password_hash -> Nullable<Text>,
        totp_secret -> Nullable<Text>,
        totp_step -> Nullable<Int8>,
        wrong_codes -> Int4,
        oidc_issuer -> Nullable<Text>,
        oidc_subject -> Nullable<Text>,
        created_at -> Timestamptz,
        last_signed_in_at -> Nullable<Timestamptz>,
        last_address -> Nullable<Text>,
    }
}

diesel::table! {
    recovery_codes (person, hash) {
        person -> Text,
        hash -> Bytea,
    }
}

diesel::table! {
    invitations (person) {
        person -> Text,
        token_hash -> Bytea,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    sessions (id) {
        id -> Uuid,
        person -> Text,
        token_hash -> Bytea,
        created_at -> Timestamptz,
        last_used_at -> Timestamptz,
        expires_at -> Timestamptz,
        address -> Text,
        user_agent -> Nullable<Text>,
        refusals -> Int4,
    }
}

diesel::table! {
    signing_keys (id) {
        id -> Text,
        private_key -> Text,
        public_key -> Jsonb,
        created_at -> Timestamptz,
        activates_at -> Timestamptz,
    }
}

diesel::table! {
    revocations (subject) {
        subject -> Text,
        revocation -> Jsonb,
        expires_at -> Timestamptz,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    audit_records (id) {
        id -> Int8,
        created_at -> Timestamptz,
        actor -> Text,
        action -> Text,
        subject -> Text,
        merchant -> Nullable<Text>,
        detail -> Jsonb,
    }
}

diesel::joinable!(sessions -> people (person));
diesel::allow_tables_to_appear_in_same_query!(clients, client_secrets);
diesel::allow_tables_to_appear_in_same_query!(people, sessions);
