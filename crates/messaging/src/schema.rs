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
    inbox (queue, event_id) {
        queue -> Text,
        event_id -> Uuid,
        received_at -> Timestamptz,
    }
}
