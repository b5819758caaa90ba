//! The tables of `migrations/messaging`, as Diesel knows them.

diesel::table! {
    outbox (sequence) {
        sequence -> Int8,
        event_id -> Uuid,
        routing_key -> Text,
        event -> Text,
        created_at -> Timestamptz,
    }
}
