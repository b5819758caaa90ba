//! Events that wait for rows that other transactions have locked.
//!
//! Later events of the same subject wait behind them, so that none overtakes. The events stay unacknowledged:
//! the prefetch count bounds their number, and their delivery counts do not grow.

use std::collections::VecDeque;

use platform::retry::Backoff;
use tokio::time::Instant;

use super::{Consumer, Delivered, MAX_BACKOFF, MIN_BACKOFF, Unhandled};
use crate::connection::BrokerError;
use crate::subscription::Subscription;

#[derive(Default)]
pub(super) struct SetAside(Vec<WaitingSubject>);

/// A subject and its events that wait, in order of arrival.
struct WaitingSubject {
    events: VecDeque<Delivered>,
    subject: String,
    retry_at: Instant,
    backoff: Backoff,
}

impl SetAside {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, event: Delivered) {
        let Some(event) = self.add_if_behind_another(event) else { return };
        let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
        self.0.push(WaitingSubject {
            subject: event.event.subject.clone(),
            events: VecDeque::from([event]),
            retry_at: Instant::now() + backoff.pause(),
            backoff,
        });
    }

    /// Adds an event if an event of the same subject waits. Returns it otherwise.
    pub(super) fn add_if_behind_another(&mut self, event: Delivered) -> Option<Delivered> {
        match self.0.iter_mut().find(|waiting| waiting.subject == event.event.subject) {
            Some(waiting) => {
                waiting.events.push_back(event);
                None
            }
            None => Some(event),
        }
    }

    /// Adds the events behind others of the same subject, and returns the rest.
    pub(super) fn add_behind_others(&mut self, events: Vec<Delivered>) -> Vec<Delivered> {
        events.into_iter().filter_map(|event| self.add_if_behind_another(event)).collect()
    }

    /// Waits until a subject is due to be tried again; forever if none waits.
    pub(super) async fn is_due(&self) {
        match self.0.iter().map(|waiting| waiting.retry_at).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Takes the subject that is due first.
    fn take_first(&mut self) -> Option<WaitingSubject> {
        let (index, _) = self.0.iter().enumerate().min_by_key(|(_, waiting)| waiting.retry_at)?;
        Some(self.0.remove(index))
    }

    /// Puts back a subject whose first event has to wait again.
    fn put_back(&mut self, mut waiting: WaitingSubject) {
        waiting.retry_at = Instant::now() + waiting.backoff.pause();
        self.0.push(waiting);
    }
}

impl Consumer {
    /// Sets an event aside until the row that it needs is no longer locked.
    pub(super) fn wait_for_lock(&self, set_aside: &mut SetAside, event: Delivered) {
        let queue = &self.inbox.queue;
        tracing::warn!(queue, event.id = %event.event.id, "event waits for a locked row");
        set_aside.add(event);
    }

    /// Handles the events of the subject that was set aside for the longest time, in order, until one of
    /// them has to wait again.
    pub(super) async fn retry(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
    ) -> Result<(), BrokerError> {
        let Some(mut waiting) = set_aside.take_first() else { return Ok(()) };
        while let Some(event) = waiting.events.front() {
            match self.handle(std::slice::from_ref(event)).await {
                Ok(()) => subscription.ack(event.delivery_tag).await?,
                Err(Unhandled::ShuttingDown) => return Ok(()),
                Err(Unhandled::Locked) => {
                    set_aside.put_back(waiting);
                    return Ok(());
                }
                Err(Unhandled::Failed(error)) => {
                    self.record_failure(event, &error);
                    self.requeue(subscription, std::slice::from_ref(event)).await?;
                }
            }
            waiting.events.pop_front();
        }
        Ok(())
    }
}
