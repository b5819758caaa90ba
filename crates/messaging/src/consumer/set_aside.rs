//! Events that wait for rows that other transactions have locked.
//!
//! Up to half of the prefetched events, of a few subjects, wait here, unacknowledged, so that their delivery counts
//! do not grow. Later events of the same subject wait behind them. Further events are published to the waiting
//! queue, which returns them after a pause: otherwise the events of one locked row could take all places of the
//! prefetch count, and no other event would arrive.
//!
//! Returned events go back to the waiting queue without a transaction, except those of a few subjects that are due
//! to be tried again. So many locked rows with many events cost the events of other rows little time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use platform::{chain, retry::Backoff};
use tokio::time::Instant;

use super::{Consumer, Delivered, MAX_BACKOFF, MIN_BACKOFF, SECOND_LOCK_WAIT, Unhandled};
use crate::connection::BrokerError;
use crate::publisher::{EVENT_CONTENT_TYPE, Message};
use crate::subscription::Subscription;

/// Subjects that are tried again here. Each costs [`SECOND_LOCK_WAIT`] whenever it is due.
const MAX_SUBJECTS: usize = 16;
/// Subjects in the waiting queue of which one batch tries an event.
const MAX_TRIES: usize = 4;
/// Pauses between the tries of a subject in the waiting queue.
const MIN_PAUSE: Duration = Duration::from_secs(5);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// A subject that was due this long ago is forgotten: another replica may have handled its events.
const FORGET_AFTER: Duration = Duration::from_secs(60);

pub(super) struct SetAside {
    subjects: Vec<WaitingSubject>,
    max_events: usize,
    /// The subjects whose events are in the waiting queue.
    published: HashMap<String, PublishedSubject>,
}

/// A subject whose events are in the waiting queue because its rows were locked at the last try.
struct PublishedSubject {
    retry_at: Instant,
    backoff: Backoff,
}

/// A subject and its events that wait, in order of arrival.
struct WaitingSubject {
    events: VecDeque<Delivered>,
    subject: String,
    retry_at: Instant,
    backoff: Backoff,
}

impl SetAside {
    pub(super) fn new(prefetch: u16) -> Self {
        Self {
            subjects: Vec::new(),
            max_events: usize::from(prefetch) / 2,
            published: HashMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    fn has_room_for(&self, subject: &str) -> bool {
        let events: usize = self.subjects.iter().map(|waiting| waiting.events.len()).sum();
        let is_known = self.holds(subject) || self.subjects.len() < MAX_SUBJECTS;
        events < self.max_events && is_known && !self.published.contains_key(subject)
    }

    fn holds(&self, subject: &str) -> bool {
        self.subjects.iter().any(|waiting| waiting.subject == subject)
    }

    /// Whether an event of the subject waits, here or in the waiting queue.
    pub(super) fn is_waiting(&self, subject: &str) -> bool {
        self.holds(subject) || self.published.contains_key(subject)
    }

    /// Whether an event of a subject in the waiting queue is to be tried again.
    fn is_to_be_tried(&self, subject: &str) -> bool {
        let now = Instant::now();
        self.published.get(subject).is_some_and(|published| published.retry_at <= now)
    }

    /// A row of the subject is locked.
    pub(super) fn record_locked(&mut self, subject: &str) {
        if let Some(PublishedSubject { retry_at, backoff }) = self.published.get_mut(subject) {
            *retry_at = Instant::now() + backoff.pause();
        }
    }

    /// An event of the subject was handled, or goes elsewhere.
    pub(super) fn record_free(&mut self, subject: &str) {
        self.published.remove(subject);
    }

    fn record_published(&mut self, subject: &str) {
        if self.published.contains_key(subject) {
            return;
        }
        let now = Instant::now();
        self.published.retain(|_, other| now < other.retry_at + FORGET_AFTER);
        let mut backoff = Backoff::new(MIN_PAUSE, MAX_PAUSE);
        let retry_at = now + backoff.pause();
        self.published.insert(subject.to_owned(), PublishedSubject { retry_at, backoff });
    }

    fn add(&mut self, event: Delivered) {
        let subject = &event.event.subject;
        if let Some(waiting) = self.subjects.iter_mut().find(|it| it.subject == *subject) {
            waiting.events.push_back(event);
            return;
        }
        let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
        self.subjects.push(WaitingSubject {
            subject: subject.clone(),
            events: VecDeque::from([event]),
            retry_at: Instant::now() + backoff.pause(),
            backoff,
        });
    }

    /// Waits until a subject is due to be tried again; forever if none waits.
    pub(super) async fn is_due(&self) {
        match self.subjects.iter().map(|waiting| waiting.retry_at).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Takes the subject that is due first.
    fn take_first(&mut self) -> Option<WaitingSubject> {
        let (index, _) =
            self.subjects.iter().enumerate().min_by_key(|(_, waiting)| waiting.retry_at)?;
        Some(self.subjects.remove(index))
    }

    /// Puts back a subject whose first event has to wait again.
    fn put_back(&mut self, mut waiting: WaitingSubject) {
        waiting.retry_at = Instant::now() + waiting.backoff.pause();
        self.subjects.push(waiting);
    }
}

impl Consumer {
    /// Tries an event of a few subjects in the waiting queue that are due, and takes the events of subjects whose
    /// rows are locked still.
    pub(super) async fn set_waiting_aside(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        events: &mut Vec<Delivered>,
    ) -> Result<(), BrokerError> {
        for _ in 0..MAX_TRIES {
            let is_to_be_tried = |it: &Delivered| set_aside.is_to_be_tried(&it.event.subject);
            let Some(index) = events.iter().position(is_to_be_tried) else { break };
            let event = events.remove(index);
            let failed = self.process_one(subscription, set_aside, event).await?;
            self.requeue(subscription, failed.as_slice()).await?;
            // As in `process`.
            if self.stop.is_cancelled() {
                return Ok(());
            }
        }
        let is_waiting = |it: &mut Delivered| set_aside.is_waiting(&it.event.subject);
        let waiting = events.extract_if(.., is_waiting).collect();
        self.set_aside(subscription, set_aside, waiting).await
    }

    /// Sets events aside until the rows that they need are no longer locked.
    pub(super) async fn set_aside(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        events: Vec<Delivered>,
    ) -> Result<(), BrokerError> {
        let mut further = Vec::new();
        let queue = &self.inbox.queue;
        for event in events {
            if set_aside.has_room_for(&event.event.subject) {
                tracing::warn!(queue, event.id = %event.event.id, "event waits for a locked row");
                set_aside.add(event);
            } else {
                further.push(event);
            }
        }
        if further.is_empty() {
            return Ok(());
        }
        let waiting = further.len();
        tracing::warn!(queue, events = waiting, "events go to the waiting queue: rows are locked");
        for event in &further {
            set_aside.record_published(&event.event.subject);
        }
        self.publish_to_return(subscription, set_aside, further, queue).await
    }

    /// Moves events to the queue for large ones, by way of the waiting queue.
    pub(super) async fn move_to_queue_for_large(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        events: Vec<Delivered>,
    ) -> Result<(), BrokerError> {
        let Some(queue) = &self.large_queue else { return Ok(()) };
        for event in &events {
            tracing::info!(queue, event.id = %event.event.id, "event moves to the queue for large ones");
        }
        self.publish_to_return(subscription, set_aside, events, queue).await
    }

    /// Publishes events to the waiting queue, which returns them to `queue`. Those that it does not take are set
    /// aside here. After an error it may have taken all of them; the inbox ignores what arrives twice.
    async fn publish_to_return(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        events: Vec<Delivered>,
        queue: &str,
    ) -> Result<(), BrokerError> {
        let message = |event: &Delivered| Message {
            exchange: self.broker.topology.waiting_exchange(),
            routing_key: queue.to_owned(),
            id: event.event.id.to_string(),
            content_type: EVENT_CONTENT_TYPE,
            headers: Vec::new(),
            body: event.body.clone(),
        };
        let messages: Vec<_> = events.iter().map(message).collect();
        let outcomes = match self.publisher.publish(&messages).await {
            Ok(outcomes) => outcomes.iter().map(Result::is_ok).collect(),
            Err(error) => {
                tracing::warn!(error = chain(&error), "the waiting queue takes no events");
                vec![false; events.len()]
            }
        };
        for (event, is_published) in events.into_iter().zip(outcomes) {
            if is_published {
                subscription.ack(event.delivery_tag).await?;
            } else {
                set_aside.add(event);
            }
        }
        Ok(())
    }

    /// Handles the events of the subject that was set aside for the longest time, in order, until one of
    /// them has to wait again.
    pub(super) async fn retry(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
    ) -> Result<(), BrokerError> {
        let Some(mut waiting) = set_aside.take_first() else { return Ok(()) };
        while let Some(event) = waiting.events.pop_front() {
            match self.handle(std::slice::from_ref(&event), SECOND_LOCK_WAIT).await {
                Ok(()) => {
                    set_aside.record_free(&waiting.subject);
                    subscription.ack(event.delivery_tag).await?;
                }
                Err(Unhandled::ShuttingDown) => return Ok(()),
                Err(Unhandled::Locked) => {
                    waiting.events.push_front(event);
                    set_aside.put_back(waiting);
                    return Ok(());
                }
                Err(Unhandled::TooLarge) => {
                    self.move_to_queue_for_large(subscription, set_aside, vec![event]).await?;
                }
                Err(Unhandled::Failed(error)) => {
                    self.record_failure(&event, &error);
                    self.requeue(subscription, &[event]).await?;
                }
            }
        }
        Ok(())
    }
}
