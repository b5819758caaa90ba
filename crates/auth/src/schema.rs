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
    clients (id) {
        id -> Text,
        merchant -> Nullable<Text>,
        name -> Text,
        scopes -> Text,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    client_secrets (id) {
        id -> Uuid,
        client_id -> Text,
        hash -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
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

diesel::allow_tables_to_appear_in_same_query!(clients, client_secrets);
