//! Events that wait for rows that other transactions have locked.
//!
//! Up to half of the prefetched events wait here, unacknowledged, so that their delivery counts do not grow.
//! Later events of the same subject wait behind them. Further events are published to the waiting queue, which
//! returns them after a pause: otherwise the events of one locked row could take all places of the prefetch
//! count, and no other event would arrive.

use std::collections::VecDeque;

use platform::{chain, retry::Backoff};
use tokio::time::Instant;

use super::{Consumer, Delivered, LOCK_WAIT, MAX_BACKOFF, MIN_BACKOFF, Unhandled};
use crate::connection::BrokerError;
use crate::publisher::{EVENT_CONTENT_TYPE, Message};
use crate::subscription::Subscription;

pub(super) struct SetAside {
    subjects: Vec<WaitingSubject>,
    max_events: usize,
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
        Self { subjects: Vec::new(), max_events: usize::from(prefetch) / 2 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    fn is_full(&self) -> bool {
        let events: usize = self.subjects.iter().map(|waiting| waiting.events.len()).sum();
        events >= self.max_events
    }

    /// Whether an event of the subject waits.
    pub(super) fn holds(&self, subject: &str) -> bool {
        self.subjects.iter().any(|waiting| waiting.subject == subject)
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
            if set_aside.is_full() {
                further.push(event);
            } else {
                tracing::warn!(queue, event.id = %event.event.id, "event waits for a locked row");
                set_aside.add(event);
            }
        }
        if further.is_empty() {
            return Ok(());
        }
        let waiting = further.len();
        tracing::warn!(queue, events = waiting, "events go to the waiting queue: rows are locked");
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

    /// Publishes events to the waiting queue, which returns them to `queue`. What it does not take is set aside
    /// here. After an error it may have taken all of them; the inbox ignores what arrives twice.
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
            match self.handle(std::slice::from_ref(&event), LOCK_WAIT).await {
                Ok(()) => subscription.ack(event.delivery_tag).await?,
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
