//! Tables of `migrations/messaging`.

diesel::table! {
    outbox (sequence) {
        sequence -> Int8,
        event_id -> Uuid,
        routing_key -> Text,
        event -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    event_republishes (id) {
        id -> Uuid,
        requested_by -> Text,
        since -> Timestamptz,
        until -> Timestamptz,
        types -> Array<Text>,
        state -> Text,
        total -> Int8,
        done -> Int8,
        last_published_at -> Timestamptz,
        last_sequence -> Int8,
        created_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    inbox (queue, event_id) {
        queue -> Text,
        event_id -> Uuid,
        received_at -> Timestamptz,
    }
}
