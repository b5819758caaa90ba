//! Events on their way in: batches in one transaction, each event once, acknowledged after commit.
//!
//! What cannot be read goes to the dead-letter queue at once. What cannot be handled is tried
//! again, after growing pauses, until the queue's delivery limit puts it aside. While the database
//! is down nothing is settled and nothing is lost: the batch waits. A database that answers, but
//! again and again not in time, is another matter: one of the events may be too much for it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::event::Event;
use futures_util::FutureExt;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use platform::{
    ErrorKind, Failure, Process, chain, database::timed_out, retry::Backoff, telemetry,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{Broker, BrokerError, Envelope, Incoming, Subscription, inbox::Inbox};

/// Why a handler could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HandleError(Box<dyn Failure>);

impl<F: Failure> From<F> for HandleError {
    fn from(failure: F) -> Self {
        Self(Box::new(failure))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the handler panicked")]
struct Panicked;

impl Failure for Panicked {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

/// Events that time out so often are taken to be too much for the database, which is not away.
const TIMEOUTS: u32 = 3;
/// The pauses between tries, of a batch that waits and of an event that fails.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Why events were not handled.
enum Unhandled {
    /// The process ends while the database is away.
    ShuttingDown,
    Failed(HandleError),
}

/// How an event came.
#[derive(Clone, Copy)]
struct DeliveryMeta {
    tag: u64,
    delivery_count: u32,
}

/// What a service does about one type of event.
pub trait Handler: Send + Sync + 'static {
    type Event: Event;

    /// No more events are held at once, whatever the settings say: all that are held are in memory,
    /// and of some types each may be megabytes.
    const MAX_PREFETCH: u16 = u16::MAX;

    /// A transaction takes no more events once they weigh so much together.
    const MAX_BATCH_COST: usize = usize::MAX;

    /// What an event weighs: one of a few kilobytes may make thousands of things.
    fn cost(_: &Self::Event) -> usize {
        0
    }

    /// Takes note of the events, in order, within the transaction that also remembers their ids.
    fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> impl Future<Output = Result<(), HandleError>> + Send;

    /// Called after the commit, for what lives outside the database.
    fn after_commit(&self) {}
}

/// Hears `H::Event` on behalf of `service` until the process ends.
pub fn consume<H: Handler>(broker: &Broker, service: &'static str, process: &Process, handler: H) {
    let queue = broker.topology.subscription_queue(service, H::Event::TYPE);
    let inbox = Inbox { pool: process.pool.clone(), queue, clock: process.clock.clone() };
    let (same, retention) = (inbox.clone(), broker.settings.inbox_retention);
    process.tasks.spawn_interval("inbox", Duration::from_secs(3600), move || {
        let inbox = same.clone();
        async move {
            if let Err(error) = inbox.forget(retention).await {
                tracing::warn!(error = chain(&error), "old event ids were not forgotten");
            }
        }
    });
    let counted = telemetry::meter()
        .u64_counter("events_consumed")
        .with_description("Events by what became of them")
        .build();
    let ages = telemetry::meter()
        .f64_histogram("event_consume_lag_seconds")
        .with_description("From an event to the commit of its effect")
        .with_boundaries(vec![0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 3600.0])
        .build();
    let (broker, handler) = (broker.clone(), Arc::new(handler));
    process
        .tasks
        .spawn("consumer", |stop| Consumer { broker, inbox, handler, counted, ages, stop }.run());
}

struct Consumer<H> {
    broker: Broker,
    inbox: Inbox,
    handler: Arc<H>,
    counted: Counter<u64>,
    ages: Histogram<f64>,
    stop: CancellationToken,
}

impl<H: Handler> Consumer<H> {
    async fn run(self) {
        // A counter that is born with the first failure shows no increase: they are all there at once.
        ["handled", "failed", "unreadable"].into_iter().for_each(|outcome| self.count(outcome, 0));
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        while !self.stop.is_cancelled() {
            if let Err(error) = self.attend(&mut backoff).await {
                tracing::warn!(
                    queue = self.inbox.queue,
                    error = chain(&error),
                    "subscribing again"
                );
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
    }

    /// Handles what the queue brings until the subscription breaks or the process ends. A batch
    /// that was begun is finished first.
    async fn attend(&self, backoff: &mut Backoff) -> Result<(), BrokerError> {
        let settings = &self.broker.settings;
        let link = &self.broker.consuming;
        // None would mean: without a bound.
        const { assert!(H::MAX_PREFETCH > 0) };
        let prefetch = settings.prefetch.get().min(H::MAX_PREFETCH);
        let mut subscription = tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            opened = Subscription::open(link, &self.inbox.queue, prefetch) => opened?,
        };
        backoff.reset();
        loop {
            let batch = tokio::select! {
                // First of all: acknowledging another batch would also settle what was left alone.
                biased;
                () = self.stop.cancelled() => return Ok(()),
                batch = subscription.next(settings.batch_size.get()) => batch?,
            };
            self.settle(&subscription, batch).await?;
        }
    }

    /// Reads a batch and settles it, as many events at once as one transaction takes.
    async fn settle(
        &self,
        subscription: &Subscription,
        batch: Vec<Incoming>,
    ) -> Result<(), BrokerError> {
        let (mut came, mut events) = (Vec::new(), Vec::new());
        for incoming in batch {
            match serde_json::from_slice::<Envelope<H::Event>>(&incoming.body) {
                Ok(event) => {
                    came.push(DeliveryMeta {
                        tag: incoming.delivery_tag,
                        delivery_count: incoming.delivery_count,
                    });
                    events.push(event);
                }
                Err(error) => {
                    tracing::error!(queue = self.inbox.queue, %error, "an event cannot be read and is put aside");
                    self.count("unreadable", 1);
                    subscription.dead_letter(incoming.delivery_tag).await?;
                }
            }
        }
        let (mut came, mut events) = (came.as_slice(), events.as_slice());
        // What is left when the process ends goes back to the queue.
        while !events.is_empty() && !self.stop.is_cancelled() {
            let size = full_transaction::<H>(events);
            let (first, rest) = events.split_at(size);
            let (first_came, rest_came) = came.split_at(size);
            self.settle_together(subscription, first_came, first).await?;
            (came, events) = (rest_came, rest);
        }
        Ok(())
    }

    async fn settle_together(
        &self,
        subscription: &Subscription,
        came: &[DeliveryMeta],
        events: &[Envelope<H::Event>],
    ) -> Result<(), BrokerError> {
        match self.handle(events).await {
            Ok(()) => {
                self.count("handled", came.len());
                self.show_ages(events);
                match came.last() {
                    Some(last) => subscription.ack_up_to(last.tag).await,
                    None => Ok(()),
                }
            }
            // Unsettled, they go back to the queue.
            Err(Unhandled::ShuttingDown) => Ok(()),
            Err(Unhandled::Failed(error)) if came.len() == 1 => {
                self.failed(events, &error);
                self.hand_back(subscription, came).await
            }
            // One of them is at fault; each on its own, the others do not notice.
            Err(Unhandled::Failed(_)) => self.settle_each(subscription, came, events).await,
        }
    }

    async fn settle_each(
        &self,
        subscription: &Subscription,
        came: &[DeliveryMeta],
        events: &[Envelope<H::Event>],
    ) -> Result<(), BrokerError> {
        let mut failed = Vec::new();
        for (came, event) in came.iter().zip(events) {
            let event = std::slice::from_ref(event);
            match self.handle(event).await {
                Ok(()) => {
                    self.count("handled", 1);
                    self.show_ages(event);
                    subscription.ack(came.tag).await?;
                }
                Err(Unhandled::ShuttingDown) => return Ok(()),
                Err(Unhandled::Failed(error)) => {
                    self.failed(event, &error);
                    failed.push(*came);
                }
            }
        }
        self.hand_back(subscription, &failed).await
    }

    fn failed(&self, events: &[Envelope<H::Event>], error: &HandleError) {
        let error = chain(error.0.as_ref());
        for event in events {
            let queue = &self.inbox.queue;
            tracing::error!(queue, event.id = %event.id, error, "an event was not handled");
        }
        self.count("failed", events.len());
    }

    /// Returns events that failed to their queue. Not at once: what was wrong may pass, and the
    /// delivery limit is soon reached.
    async fn hand_back(
        &self,
        subscription: &Subscription,
        failed: &[DeliveryMeta],
    ) -> Result<(), BrokerError> {
        let Some(returns) = failed.iter().map(|came| came.delivery_count).max() else {
            return Ok(());
        };
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(returns)).min(LONGEST_PAUSE);
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(pause) => {}
        }
        for came in failed {
            subscription.requeue(came.tag).await?;
        }
        Ok(())
    }

    /// Handles events in one transaction, waiting for as long as the database is away; gives up
    /// when the process ends, or when the database does not manage them in time.
    async fn handle(&self, events: &[Envelope<H::Event>]) -> Result<(), Unhandled> {
        let Some(first) = events.first() else { return Ok(()) };
        let span = tracing::info_span!(
            "handle",
            otel.kind = "consumer",
            queue = self.inbox.queue,
            event.id = %first.id,
            events = events.len(),
        );
        telemetry::adopt(&span, first.traceparent.as_deref());
        // A batch is one piece of work, done in the first event's trace; the others point to it.
        let others = events.iter().skip(1).filter_map(|event| event.traceparent.as_deref());
        others.for_each(|other| telemetry::link(&span, other));
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut timeouts = 0;
        async {
            loop {
                let error = match self.transact(events).await {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                };
                timeouts += u32::from(timed_out(error.0.as_ref()));
                if error.0.kind() != ErrorKind::Unavailable || timeouts >= TIMEOUTS {
                    return Err(Unhandled::Failed(error));
                }
                tracing::warn!(error = chain(error.0.as_ref()), "events wait to be tried again");
                tokio::select! {
                    () = self.stop.cancelled() => return Err(Unhandled::ShuttingDown),
                    () = tokio::time::sleep(backoff.pause()) => {}
                }
            }
        }
        .instrument(span)
        .await
    }

    async fn transact(&self, events: &[Envelope<H::Event>]) -> Result<(), HandleError> {
        let mut conn = self.inbox.pool.get().await?;
        conn.transaction(async |conn| {
            let ids = events.iter().map(|event| event.id).collect();
            let mut fresh = self.inbox.remember(conn, ids).await?;
            let events: Vec<_> = events.iter().filter(|event| fresh.remove(&event.id)).collect();
            if events.is_empty() {
                return Ok(());
            }
            // A panic is the events' own, as any failure: a process that ended over it would give back
            // what else it holds, counted as they are. Caught here, the transaction is rolled back.
            let handling = AssertUnwindSafe(self.handler.handle(conn, &events)).catch_unwind();
            handling.await.unwrap_or_else(|_panic| Err(Panicked.into()))
        })
        .await?;
        self.handler.after_commit();
        Ok(())
    }

    fn show_ages(&self, events: &[Envelope<H::Event>]) {
        let now = self.inbox.clock.now();
        let queue = [KeyValue::new("queue", self.inbox.queue.clone())];
        for event in events {
            self.ages.record((now - event.time).as_seconds_f64().max(0.0), &queue);
        }
    }

    fn count(&self, outcome: &'static str, events: usize) {
        let labels =
            [KeyValue::new("queue", self.inbox.queue.clone()), KeyValue::new("outcome", outcome)];
        self.counted.add(events.try_into().unwrap_or(u64::MAX), &labels);
    }
}

/// How many of these events one transaction takes: one at least.
fn full_transaction<H: Handler>(events: &[Envelope<H::Event>]) -> usize {
    let mut weight = 0_usize;
    let has_room = |event: &&Envelope<H::Event>| {
        let has_room = weight < H::MAX_BATCH_COST;
        weight = weight.saturating_add(H::cost(&event.data));
        has_room
    };
    events.iter().take_while(has_room).count()
}
