//! Consumers: each batch of events is handled in one transaction and acknowledged after the commit.
//!
//! An unreadable event is dead-lettered at once. A failed event is requeued, with back-off, until
//! the queue's delivery limit dead-letters it. While the database is unavailable the batch waits.
//! If the database repeatedly times out, one of the events may be too expensive, and each event is
//! handled on its own. If a row is locked, the events that need it are set aside ([`set_aside`]) and tried
//! again later, so that they delay no others.
//!
//! An event that is too large for its queue moves to the queue for large ones, if the handler names one.
//!
//! Handlers accept the events of a subject in any order: replicas share a queue.
//!
//! See docs/decisions/event-consumers.md.

mod handling;
mod set_aside;

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use platform::{Process, chain, retry::Backoff, telemetry};
use tokio_util::sync::CancellationToken;

use self::{handling::Unhandled, set_aside::SetAside};
use crate::{
    broker::Broker,
    connection::BrokerError,
    handler::{AnyHandler, HandleError, Handler, ReadEvent},
    inbox::Inbox,
    publisher::Publisher,
    subscription::{Incoming, Subscription},
};

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(3);
/// Longest wait for a lock. Other consumers hold theirs for the time of a batch.
const LOCK_WAIT: &str = "SET LOCAL lock_timeout = '100ms'";
/// Longest wait for a lock of an event whose batch has waited for [`LOCK_WAIT`]. A batch of events that are all
/// locked delays the events behind it by this time for each.
const SECOND_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '10ms'";
const INBOX_CLEANUP_INTERVAL: Duration = Duration::from_secs(3600);

/// An event and how the broker delivered it.
struct Delivered {
    delivery_tag: u64,
    delivery_count: u32,
    body: Vec<u8>,
    event: ReadEvent,
}

/// Consumes `H::Event` from the queue of `service` until the process stops.
pub fn consume<H: Handler>(broker: &Broker, service: &'static str, process: &Process, handler: H) {
    consume_events(broker, service, process, Arc::new(handler));
}

fn consume_events(
    broker: &Broker,
    service: &'static str,
    process: &Process,
    handler: Arc<dyn AnyHandler>,
) {
    let queue = broker.topology.subscription_queue(service, handler.event_type());
    let large_queue = handler.queue_for_large();
    let large_queue = large_queue.map(|event| broker.topology.subscription_queue(service, event));
    let inbox = Inbox { pool: process.pool.clone(), queue, clock: process.clock.clone() };
    delete_expired_ids(&inbox, broker.settings.inbox_retention, process);
    let consumed = telemetry::meter()
        .u64_counter("events_consumed")
        .with_description("Consumed events by queue and outcome")
        .build();
    let lag = telemetry::meter()
        .f64_histogram("event_consume_lag_seconds")
        .with_description("Time from an event to the commit of its handler's transaction")
        .with_boundaries(vec![0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0])
        .build();
    let broker = broker.clone();
    let publisher = Publisher::new(broker.publishing.clone());
    process.tasks.spawn("consumer", |stop| {
        Consumer { broker, publisher, inbox, large_queue, handler, consumed, lag, stop }.run()
    });
}

fn delete_expired_ids(inbox: &Inbox, retention: Duration, process: &Process) {
    let inbox = inbox.clone();
    process.tasks.spawn_interval("inbox", INBOX_CLEANUP_INTERVAL, move || {
        let inbox = inbox.clone();
        async move {
            if let Err(error) = inbox.delete_expired(retention).await {
                tracing::warn!(error = chain(&error), "inbox cleanup failed");
            }
        }
    });
}

struct Consumer {
    broker: Broker,
    /// For events that wait for a locked row.
    publisher: Publisher,
    inbox: Inbox,
    /// The queue that takes events that are too large for this one.
    large_queue: Option<String>,
    handler: Arc<dyn AnyHandler>,
    consumed: Counter<u64>,
    lag: Histogram<f64>,
    stop: CancellationToken,
}

impl Consumer {
    async fn run(self) {
        // The counters start at zero: a series that starts with the first failure has no increase.
        ["handled", "failed", "unreadable"].into_iter().for_each(|outcome| self.count(outcome, 0));
        tokio::select! {
            () = self.stop.cancelled() => return,
            // A handler may take sequence numbers.
            () = self.broker.restore_check.ended() => {}
        }
        if self.stop.run_until_cancelled(self.handler.ready()).await.is_none() {
            return;
        }
        let mut backoff = Backoff::new(MIN_BACKOFF, MAX_BACKOFF);
        while !self.stop.is_cancelled() {
            if let Err(error) = self.consume(&mut backoff).await {
                let queue = &self.inbox.queue;
                tracing::warn!(queue, error = chain(&error), "subscription failed");
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
    }

    /// Processes batches until the subscription fails or the process stops. The current batch is
    /// completed first.
    async fn consume(&self, backoff: &mut Backoff) -> Result<(), BrokerError> {
        let settings = &self.broker.settings;
        let prefetch = settings.prefetch.get().min(self.handler.max_prefetch());
        let mut subscription = tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            opened = Subscription::open(&self.broker.consuming, &self.inbox.queue, prefetch) => opened?,
        };
        backoff.reset();
        // Events that are left at shutdown, or when the subscription fails, return to the queue.
        let mut set_aside = SetAside::new(prefetch);
        // A batch after the stop would also acknowledge events that were left unhandled.
        while !self.stop.is_cancelled() {
            // In random order: many events that were set aside do not hold up new ones.
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = set_aside.is_due() => self.retry(&subscription, &mut set_aside).await?,
                batch = subscription.next(settings.batch_size.get()) => {
                    self.process(&subscription, &mut set_aside, batch?).await?;
                }
            }
        }
        Ok(())
    }

    /// Deserializes a batch and processes it, in as many transactions as its cost requires.
    async fn process(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        batch: Vec<Incoming>,
    ) -> Result<(), BrokerError> {
        let mut events = Vec::with_capacity(batch.len());
        for Incoming { delivery_tag, delivery_count, body, .. } in batch {
            match self.handler.read(&body) {
                Ok(event) => events.push(Delivered { delivery_tag, delivery_count, body, event }),
                Err(error) => {
                    let queue = &self.inbox.queue;
                    tracing::error!(queue, %error, "unreadable event dead-lettered");
                    self.count("unreadable", 1);
                    subscription.dead_letter(delivery_tag).await?;
                }
            }
        }
        while !events.is_empty() {
            self.set_waiting_aside(subscription, set_aside, &mut events).await?;
            // Events that are left at shutdown return to the queue. An acknowledgement of all events up to one that was
            // handled now would include them.
            if self.stop.is_cancelled() {
                return Ok(());
            }
            let mut next = events;
            events = next.split_off(transaction_size(&next, self.handler.max_batch_cost()));
            self.process_together(subscription, set_aside, next).await?;
        }
        Ok(())
    }

    async fn process_together(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        events: Vec<Delivered>,
    ) -> Result<(), BrokerError> {
        let Some(last) = events.last() else { return Ok(()) };
        match self.handle(&events, LOCK_WAIT).await {
            Ok(()) if set_aside.is_empty() => subscription.ack_up_to(last.delivery_tag).await,
            Ok(()) => {
                for event in &events {
                    subscription.ack(event.delivery_tag).await?;
                }
                Ok(())
            }
            Err(Unhandled::ShuttingDown) => Ok(()),
            Err(Unhandled::Failed(error)) if events.len() == 1 => {
                self.record_failure(last, &error);
                self.requeue(subscription, &events).await
            }
            Err(Unhandled::Locked) if events.len() == 1 => {
                self.set_aside(subscription, set_aside, events).await
            }
            Err(Unhandled::TooLarge) if events.len() == 1 => {
                self.move_to_queue_for_large(subscription, set_aside, events).await
            }
            // One event failed the batch. On their own, the others succeed.
            Err(Unhandled::Failed(_) | Unhandled::Locked | Unhandled::TooLarge) => {
                self.process_individually(subscription, set_aside, events).await
            }
        }
    }

    async fn process_individually(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        events: Vec<Delivered>,
    ) -> Result<(), BrokerError> {
        let (mut failed, mut waiting) = (Vec::new(), Vec::new());
        for event in events {
            // As in `process`.
            if self.stop.is_cancelled() {
                return Ok(());
            }
            if set_aside.is_waiting(&event.event.subject) {
                waiting.push(event);
            } else {
                failed.extend(self.process_one(subscription, set_aside, event).await?);
            }
        }
        self.set_aside(subscription, set_aside, waiting).await?;
        self.requeue(subscription, &failed).await
    }

    /// Handles one event on its own. Returns it if it failed.
    async fn process_one(
        &self,
        subscription: &Subscription,
        set_aside: &mut SetAside,
        event: Delivered,
    ) -> Result<Option<Delivered>, BrokerError> {
        let outcome = self.handle(std::slice::from_ref(&event), SECOND_LOCK_WAIT).await;
        let subject = &event.event.subject;
        match &outcome {
            Err(Unhandled::Locked) => set_aside.record_locked(subject),
            _ => set_aside.record_free(subject),
        }
        match outcome {
            Ok(()) => subscription.ack(event.delivery_tag).await?,
            Err(Unhandled::ShuttingDown) => {}
            Err(Unhandled::Locked) => {
                self.set_aside(subscription, set_aside, vec![event]).await?;
            }
            Err(Unhandled::TooLarge) => {
                self.move_to_queue_for_large(subscription, set_aside, vec![event]).await?;
            }
            Err(Unhandled::Failed(error)) => {
                self.record_failure(&event, &error);
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Requeues failed events after a pause that grows with their delivery count: the cause may
    /// pass, and the delivery limit is low.
    async fn requeue(
        &self,
        subscription: &Subscription,
        failed: &[Delivered],
    ) -> Result<(), BrokerError> {
        let Some(delivery_count) = failed.iter().map(|event| event.delivery_count).max() else {
            return Ok(());
        };
        let factor = 2_u32.saturating_pow(delivery_count);
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(MIN_BACKOFF.saturating_mul(factor).min(MAX_BACKOFF)) => {}
        }
        for event in failed {
            subscription.requeue(event.delivery_tag).await?;
        }
        Ok(())
    }

    fn record_failure(&self, event: &Delivered, error: &HandleError) {
        self.count("failed", 1);
        let queue = &self.inbox.queue;
        let error = chain(error.0.as_ref());
        tracing::error!(queue, event.id = %event.event.id, error, "event handler failed");
    }

    fn count(&self, outcome: &'static str, events: usize) {
        let labels =
            [KeyValue::new("queue", self.inbox.queue.clone()), KeyValue::new("outcome", outcome)];
        self.consumed.add(events.try_into().unwrap_or(u64::MAX), &labels);
    }
}

/// Number of leading events that one transaction takes, at least one.
fn transaction_size(events: &[Delivered], max_cost: usize) -> usize {
    let mut cost = 0_usize;
    let fits = |event: &&Delivered| {
        let fits = cost < max_cost;
        cost = cost.saturating_add(event.event.cost);
        fits
    };
    events.iter().take_while(fits).count()
}
