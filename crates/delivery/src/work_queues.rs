//! The way of claimed deliveries to the work queues. A task of its own publishes them (`queue_publisher.rs`), so that
//! nobody who claims deliveries waits for the broker.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::message_kind::MessageKind;
use messaging::{Exchange, Message, Topology};
use platform::Timestamp;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::queue_message::header;

/// While this many messages wait for the broker, the dispatcher claims no others.
const MAX_WAITING: usize = 1000;

/// The default exchange, whose routing keys are names of queues.
pub(crate) fn default_exchange() -> Exchange {
    Exchange(String::new())
}

/// A claimed delivery: queued in the database, and not in the broker yet.
pub(crate) struct ClaimedMessage {
    pub(crate) id: Uuid,
    pub(crate) merchant: String,
    pub(crate) kind: MessageKind,
    pub(crate) version: i32,
    pub(crate) event: String,
    pub(crate) sequence: i64,
    pub(crate) replay_number: i32,
    /// Finished attempts.
    pub(crate) attempts: i32,
    pub(crate) releases: i32,
    pub(crate) leased_until: Timestamp,
    pub(crate) is_window_full: bool,
    pub(crate) traceparent: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl ClaimedMessage {
    /// Builds the message for the work queue, with the headers that `QueueMessage` parses.
    pub(crate) fn into_message(self, topology: &Topology) -> Message {
        let id = self.id.to_string();
        let mut headers = vec![
            (header::DELIVERY, id.clone()),
            (header::MERCHANT, self.merchant),
            (header::EVENT, self.event),
            (header::VERSION, self.version.to_string()),
            (header::SEQUENCE, self.sequence.to_string()),
            (header::REPLAY_NUMBER, self.replay_number.to_string()),
            (header::ATTEMPT, (self.attempts + 1).to_string()),
            (header::LEASED_UNTIL, self.leased_until.timestamp_millis().to_string()),
        ];
        if self.releases > 0 {
            headers.push((header::RELEASES, self.releases.to_string()));
        }
        if self.is_window_full {
            headers.push((header::WINDOW_FULL, "true".to_owned()));
        }
        headers.extend(self.traceparent.map(|parent| (header::TRACEPARENT, parent)));
        Message {
            exchange: default_exchange(),
            routing_key: topology.qualified(self.kind.queue()),
            id,
            content_type: "application/json",
            headers,
            body: self.body,
        }
    }
}

/// Claims on their way to the publisher.
pub(crate) enum Claims {
    Publish(Vec<ClaimedMessage>),
    /// Deliveries that are queued if their transaction was committed.
    Release(Vec<Uuid>),
}

pub(crate) type ClaimReceiver = mpsc::UnboundedReceiver<Claims>;

pub(crate) struct WorkQueues {
    /// `None` after the process began to stop: no claim can begin.
    sender: Mutex<Option<ClaimSender>>,
    waiting: Arc<AtomicUsize>,
    has_failed: AtomicBool,
}

/// Takes claimed messages. As long as one exists, the publisher runs.
#[derive(Clone)]
pub(crate) struct ClaimSender {
    sender: mpsc::UnboundedSender<Claims>,
    waiting: Arc<AtomicUsize>,
}

impl ClaimSender {
    pub(crate) fn publish(&self, messages: Vec<ClaimedMessage>) {
        self.waiting.fetch_add(messages.len(), Ordering::Relaxed);
        self.send(Claims::Publish(messages));
    }

    pub(crate) fn release(&self, ids: Vec<Uuid>) {
        self.send(Claims::Release(ids));
    }

    fn send(&self, claims: Claims) {
        if self.sender.send(claims).is_err() {
            // The process ends, because one of its tasks did. Other replicas wait for the leases to expire.
            tracing::error!("the publisher of claimed deliveries has ended");
        }
    }
}

impl WorkQueues {
    pub(crate) fn new() -> (Self, ClaimReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let sender = Mutex::new(Some(ClaimSender { sender, waiting: waiting.clone() }));
        (Self { sender, waiting, has_failed: AtomicBool::new(false) }, receiver)
    }

    /// Begins a claim, unless the process stops.
    pub(crate) fn sender(&self) -> Option<ClaimSender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets no other claim begin.
    pub(crate) fn close(&self) {
        *self.sender.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether many messages wait for the broker.
    pub(crate) fn is_busy(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= MAX_WAITING
    }

    /// Notes that messages are in the broker, or that their claims are released.
    pub(crate) fn finished(&self, messages: usize) {
        self.waiting.fetch_sub(messages, Ordering::Relaxed);
    }

    /// Notes that the broker did not accept messages.
    pub(crate) fn failed(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Whether the broker did not accept messages since the last call.
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chrono::TimeDelta;
    use messaging::Incoming;
    use platform::Clock;

    use super::*;
    use crate::queue_message::QueueMessage;

    fn claimed() -> ClaimedMessage {
        ClaimedMessage {
            id: Uuid::now_v7(),
            merchant: "acme".to_owned(),
            kind: MessageKind::Rma,
            version: 3,
            event: "rma.created".to_owned(),
            sequence: 7,
            replay_number: 1,
            attempts: 2,
            releases: 0,
            leased_until: Clock::system().now() + TimeDelta::minutes(5),
            is_window_full: true,
            traceparent: Some("00-1-2-01".to_owned()),
            body: b"{}".to_vec(),
        }
    }

    #[test]
    fn a_sender_reads_what_was_claimed() {
        let claimed = claimed();
        let (id, leased_until) = (claimed.id, claimed.leased_until.timestamp_millis());
        let message = claimed.into_message(&Topology::empty("test"));
        assert_eq!(message.routing_key, "test.notify.rma");
        let headers = message.headers.into_iter().map(|(name, value)| (name.to_owned(), value));
        let incoming = Incoming {
            delivery_tag: 1,
            redelivered: false,
            delivery_count: 0,
            headers: headers.collect(),
            body: message.body,
        };
        let (lease, now) = (Duration::from_secs(300), Clock::system().now());
        let read = QueueMessage::parse(MessageKind::Rma, incoming, 1, lease, now).unwrap();
        assert_eq!(read.key(), (id, 1, 3));
        assert_eq!(read.leased_until.timestamp_millis(), leased_until);
        assert!(read.is_window_full && !read.maybe_duplicate);
        assert_eq!(read.content.sequence, 7);
        assert_eq!(read.content.traceparent.as_deref(), Some("00-1-2-01"));
    }

    #[tokio::test]
    async fn a_claim_that_has_begun_is_published_before_the_publisher_ends() {
        let (work_queues, mut claims) = WorkQueues::new();
        let begun = work_queues.sender().unwrap();
        work_queues.close();
        assert!(work_queues.sender().is_none());
        begun.publish(vec![claimed()]);
        drop(begun);
        let received = claims.recv().await;
        assert!(matches!(received, Some(Claims::Publish(messages)) if messages.len() == 1));
        assert!(claims.recv().await.is_none());
    }
}
