//! Tables of `migrations/delivery` that are queried through Diesel's DSL.

diesel::table! {
    deliveries (id) {
        id -> Uuid,
        merchant -> Text,
        kind -> Text,
        ordering_key -> Nullable<Text>,
        sequence -> Int8,
        state -> Text,
        next_attempt_at -> Timestamptz,
        leased_until -> Nullable<Timestamptz>,
        replay_number -> Int4,
        attempts -> Int4,
        releases -> Int4,
    }
}

diesel::table! {
    delivery_messages (id) {
        id -> Uuid,
        body -> Bytea,
    }
}

diesel::table! {
    delivery_attempts (delivery, replay_number, number, started_at) {
        delivery -> Uuid,
        replay_number -> Int4,
        number -> Int4,
        started_at -> Timestamptz,
        latency_ms -> Int4,
        outcome -> Text,
        status -> Nullable<Int4>,
        detail -> Text,
        response_body -> Text,
        request_headers -> Text,
        response_headers -> Text,
    }
}

diesel::table! {
    delivery_endpoints (merchant, kind) {
        merchant -> Text,
        kind -> Text,
        not_before -> Timestamptz,
    }
}

diesel::table! {
    delivery_replays (id) {
        id -> Uuid,
        requested_by -> Text,
        filter -> Jsonb,
        force -> Bool,
        per_second -> Int4,
        state -> Text,
        matched -> Int8,
        last_delivery_id -> Uuid,
        replayed -> Int8,
        skipped -> Int8,
        failed -> Int8,
        created_at -> Timestamptz,
        advanced_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
        changed_by -> Nullable<Text>,
    }
}
