//! The result of an attempt at a message, to be written to the database.

use bytes::Bytes;
use domain::message_kind::MessageKind;
use uuid::Uuid;

use crate::attempt::Attempt;
use crate::outcome::{Decision, Outcome};
use crate::queue_message::QueueMessage;

#[derive(Debug)]
pub struct Settlement {
    pub(crate) message: QueueMessage,
    /// The request that got a 401 before the token was refreshed. It does not count as an attempt.
    pub(crate) unauthorized: Option<Attempt>,
    pub(crate) attempt: Attempt,
    pub decision: Decision,
    /// Body of the response, for kinds whose success depends on it.
    pub response: Bytes,
}

impl Settlement {
    pub fn id(&self) -> Uuid {
        self.message.id
    }

    pub fn merchant(&self) -> &str {
        &self.message.content.merchant
    }

    pub fn kind(&self) -> MessageKind {
        self.message.content.kind
    }

    /// For example `rma.created`.
    pub fn event(&self) -> &str {
        &self.message.content.event
    }

    /// The trace of the attempt, so that effects of the response belong to the trace of the message.
    pub fn traceparent(&self) -> Option<&str> {
        self.message.content.traceparent.as_deref()
    }

    /// The outcome of the last request.
    pub fn outcome(&self) -> &Outcome {
        &self.attempt.outcome
    }

    /// Returns the HTTP requests in order.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.unauthorized.iter().chain([&self.attempt])
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use domain::message_kind::MessageVersion;
    use platform::Timestamp;

    use super::*;
    use crate::attempt::{LoggedHeaders, Message, ResponseBody};
    use crate::outcome::Signal;
    use crate::queue_message::DeliveryTag;

    /// Builds the result of a first attempt.
    pub(crate) fn settlement(
        id: Uuid,
        decision: Decision,
        signal: Signal,
        started_at: Timestamp,
    ) -> Settlement {
        let content = Message {
            id: id.to_string(),
            merchant: "acme".to_owned(),
            kind: MessageKind::Rma,
            version: MessageVersion(3),
            event: "rma.created".to_owned(),
            sequence: 1,
            traceparent: None,
            body: Bytes::from_static(b"{}"),
            response_body: ResponseBody::Ignored,
        };
        let message = QueueMessage {
            id,
            replay_number: 0,
            attempt_number: 1,
            leased_until: started_at,
            maybe_duplicate: false,
            is_window_full: true,
            tag: DeliveryTag { subscription: 1, tag: 1 },
            content,
            permit: None,
        };
        let attempt = Attempt {
            outcome: Outcome::TimedOut,
            signal,
            started_at,
            latency: Duration::from_millis(5),
            response: Bytes::new(),
            response_memory: None,
            response_log: String::new(),
            headers: LoggedHeaders::default(),
        };
        Settlement { message, unauthorized: None, attempt, decision, response: Bytes::new() }
    }
}
