//! An event as the outbox stores it, and the message that is published for it.

use platform::Timestamp;
use uuid::Uuid;

use crate::{
    publisher::{EVENT_CONTENT_TYPE, Message},
    topology::Exchange,
};

platform::rows! {
    pub(super) struct EventRow {
        pub(super) sequence: i64,
        pub(super) event_id: Uuid,
        pub(super) routing_key: String,
        event: String,
        pub(super) created_at: Timestamp,
    }
}

impl EventRow {
    pub(super) fn message(&self, exchange: &Exchange) -> Message {
        Message {
            exchange: exchange.clone(),
            routing_key: self.routing_key.clone(),
            id: self.event_id.to_string(),
            content_type: EVENT_CONTENT_TYPE,
            headers: Vec::new(),
            body: self.body().into_bytes(),
        }
    }

    /// The event with its `sequence`, which is known only after the insert. The fixed width makes
    /// sequences comparable as strings.
    fn body(&self) -> String {
        let members = self.event.strip_prefix('{').unwrap_or(&self.event);
        format!("{{\"sequence\":\"{:019}\",{members}", self.sequence)
    }
}
