//! Sends the messages of one kind: receives them from the work queue, runs the attempts, settles.
//!
//! A message is acknowledged after it is settled, with two exceptions: a slow message (see
//! [`AckTracker`]) and a duplicate of one in flight. If the process dies, the lease of such a message
//! expires and it is sent again. If the broker connection is lost, attempts continue and are
//! settled; the claim check drops the redelivered copies.

mod claims;
mod inflight_budget;
mod queue_source;
mod run_attempt;
mod settle_queue;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use messaging::{BrokerError, Incoming};
use platform::{chain, retry::Backoff};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ack_tracker::{AckTracker, SLOW_AFTER};
use crate::engine::{Engine, reconnect_backoff};
use crate::queue_message::{AttemptKey, QueueMessage};
use crate::settlement::Settlement;
use claims::{extract_paused, still_claimed};
pub(crate) use inflight_budget::InflightBudget;
use queue_source::{QueueSource, SourceEvent};
use run_attempt::run_attempt;
use settle_queue::SettleQueue;

/// Interval of counting slow attempts and acknowledging them.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(250);
/// Time to settle and to release claims after the drain deadline.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1500);

pub(crate) struct Sender {
    engine: Arc<Engine>,
    kind: MessageKind,
    source: QueueSource,
    /// Subscriptions so far. Delivery tags are valid only for the latest one.
    subscriptions: u64,
    reconnect_backoff: Backoff,
    attempts: JoinSet<Settlement>,
    /// Attempts that are not settled yet. A duplicate of one of them is dropped.
    in_flight: HashMap<AttemptKey, InFlight>,
    /// Running attempts that were slow at the last maintenance.
    slow: usize,
    acks: AckTracker,
    settle_queue: SettleQueue,
    stop: CancellationToken,
    /// Attempts that still run at the drain deadline are aborted.
    drain_deadline: CancellationToken,
}

struct InFlight {
    task: tokio::task::Id,
    started: Instant,
    is_completed: bool,
}

impl Sender {
    pub(crate) fn new(
        engine: Arc<Engine>,
        kind: MessageKind,
        (stop, drain_deadline): (CancellationToken, CancellationToken),
    ) -> Self {
        Self {
            source: QueueSource::open(&engine, kind, Duration::ZERO),
            subscriptions: 0,
            reconnect_backoff: reconnect_backoff(),
            attempts: JoinSet::new(),
            in_flight: HashMap::new(),
            slow: 0,
            acks: AckTracker::new(engine.settings.prefetch.get()),
            settle_queue: SettleQueue::new(engine.clone()),
            engine,
            kind,
            stop,
            drain_deadline,
        }
    }

    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        if !self.engine.wait_for_merchants(&stop).await {
            return;
        }
        let mut ticks = tokio::time::interval(MAINTENANCE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let (free_slots, settle_at) = (self.free_slots(), self.settle_queue.start_at());
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = ticks.tick() => self.run_maintenance().await,
                settled = self.settle_queue.settled() => self.on_settled(settled).await,
                Some(result) = self.attempts.join_next() => self.on_all_completed(result),
                () = sleep_until(settle_at) => {}
                event = self.source.next(free_slots), if free_slots > 0 => {
                    self.on_event(event).await;
                }
            }
            // Without running attempts, a batch has nothing more to wait for.
            if self.attempts.is_empty() || self.settle_queue.is_due() {
                self.settle_queue.start();
            }
        }
        self.shut_down().await;
    }

    /// Number of attempts that may start. A completed attempt occupies its slot until it is settled.
    /// A slow one occupies none, so endpoints that hang do not block others; the memory budget
    /// bounds their number.
    fn free_slots(&self) -> usize {
        let slots = self.engine.settings.concurrency.get() + self.slow;
        slots.saturating_sub(self.in_flight.len())
    }

    async fn run_maintenance(&mut self) {
        let is_slow =
            |attempt: &&InFlight| !attempt.is_completed && attempt.started.elapsed() >= SLOW_AFTER;
        self.slow = self.in_flight.values().filter(is_slow).count();
        self.acknowledge_or_reconnect().await;
    }

    async fn on_event(&mut self, event: Result<SourceEvent, BrokerError>) {
        let handled = match event {
            Ok(SourceEvent::Subscribed) => {
                self.subscriptions += 1;
                self.acks = AckTracker::new(self.engine.settings.prefetch.get());
                self.reconnect_backoff.reset();
                Ok(())
            }
            Ok(SourceEvent::Messages(batch)) => self.on_received(batch).await,
            Err(error) => Err(error),
        };
        if let Err(error) = handled {
            self.reconnect(&error);
        }
    }

    fn reconnect(&mut self, error: &BrokerError) {
        let queue = self.kind.queue();
        tracing::warn!(queue, error = chain(error), "subscription lost, reconnecting");
        let delay = self.reconnect_backoff.pause();
        self.source = QueueSource::open(&self.engine, self.kind, delay);
    }

    async fn on_received(
        &mut self,
        batch: Vec<(Incoming, OwnedSemaphorePermit)>,
    ) -> Result<(), BrokerError> {
        let mut messages = self.parse(batch).await?;
        if messages.iter().any(|message| message.maybe_duplicate) {
            // The check may take long. By then the other messages may be duplicates too.
            let tags: Vec<_> = messages.iter().map(|message| message.tag.tag).collect();
            tokio::select! {
                claimed = still_claimed(&self.engine, messages) => messages = claimed,
                () = self.stop.cancelled() => {
                    messages = Vec::new();
                    self.requeue(&tags).await?;
                }
            }
        }
        let paused = extract_paused(&self.engine, &mut messages);
        messages.into_iter().for_each(|message| self.start(message));
        // Last, because it may wait for the database.
        if !paused.is_empty() {
            claims::release(&self.engine, &paused).await;
        }
        self.acknowledge().await
    }

    /// Parses messages; invalid ones are dead-lettered.
    async fn parse(
        &mut self,
        batch: Vec<(Incoming, OwnedSemaphorePermit)>,
    ) -> Result<Vec<QueueMessage>, BrokerError> {
        let (now, lease) = (self.engine.clock.now(), self.engine.settings.lease);
        let mut messages = Vec::with_capacity(batch.len());
        for (incoming, permit) in batch {
            let tag = incoming.delivery_tag;
            self.acks.received(tag);
            match QueueMessage::parse(self.kind, incoming, self.subscriptions, lease, now) {
                Ok(message) => messages.push(QueueMessage { permit: Some(permit), ..message }),
                Err(error) => {
                    let queue = self.kind.queue();
                    tracing::error!(queue, %error, "invalid message, dead-lettered");
                    if let Some(subscription) = self.source.subscription() {
                        subscription.dead_letter(tag).await?;
                        self.acks.rejected(tag);
                    }
                }
            }
        }
        Ok(messages)
    }

    async fn requeue(&mut self, tags: &[u64]) -> Result<(), BrokerError> {
        if let Some(subscription) = self.source.subscription() {
            for tag in tags {
                subscription.requeue(*tag).await?;
                self.acks.rejected(*tag);
            }
        }
        Ok(())
    }

    /// Starts an attempt, unless it is in flight already.
    fn start(&mut self, message: QueueMessage) {
        let key = message.key();
        if self.in_flight.contains_key(&key) {
            return;
        }
        let (engine, started) = (self.engine.clone(), Instant::now());
        self.acks.started(message.tag.tag, started);
        let task = self.attempts.spawn(async move { run_attempt(&engine, message).await }).id();
        self.in_flight.insert(key, InFlight { task, started, is_completed: false });
    }

    /// Handles a completed attempt and all others that are completed by now.
    fn on_all_completed(&mut self, result: Result<Settlement, JoinError>) {
        self.on_completed(result);
        while let Some(result) = self.attempts.try_join_next() {
            self.on_completed(result);
        }
    }

    fn on_completed(&mut self, result: Result<Settlement, JoinError>) {
        match result {
            Ok(settlement) => {
                if let Some(attempt) = self.in_flight.get_mut(&settlement.message.key()) {
                    attempt.is_completed = true;
                }
                self.settle_queue.push(settlement);
            }
            // The message is not settled: it is sent again when its lease expires.
            Err(error) => {
                tracing::error!(%error, "attempt aborted");
                self.in_flight.retain(|_, attempt| attempt.task != error.id());
            }
        }
    }

    async fn on_settled(&mut self, settled: Vec<Settlement>) {
        for Settlement { message, .. } in &settled {
            self.in_flight.remove(&message.key());
            if message.tag.subscription == self.subscriptions {
                self.acks.settled(message.tag.tag);
            }
        }
        self.acknowledge_or_reconnect().await;
    }

    async fn acknowledge_or_reconnect(&mut self) {
        if let Err(error) = self.acknowledge().await {
            self.reconnect(&error);
        }
    }

    async fn acknowledge(&mut self) -> Result<(), BrokerError> {
        let Some(subscription) = self.source.subscription() else { return Ok(()) };
        match self.acks.due(Instant::now()) {
            Some(tag) => subscription.ack_up_to(tag).await,
            None => Ok(()),
        }
    }

    /// Completes and settles the attempts in flight, without receiving more.
    async fn shut_down(mut self) {
        if let Err(error) = self.source.cancel().await {
            self.reconnect(&error);
        }
        let drain_deadline = self.drain_deadline.clone();
        loop {
            self.settle_queue.start();
            if self.attempts.is_empty() && self.settle_queue.is_idle() {
                return;
            }
            let settle_at = self.settle_queue.start_at();
            tokio::select! {
                () = drain_deadline.cancelled() => break,
                settled = self.settle_queue.settled() => self.on_settled(settled).await,
                Some(result) = self.attempts.join_next() => self.on_all_completed(result),
                () = sleep_until(settle_at) => {}
            }
        }
        if tokio::time::timeout(SHUTDOWN_GRACE, self.abort()).await.is_err() {
            let queue = self.kind.queue();
            tracing::warn!(
                queue,
                "shutdown took too long, messages wait for their leases to expire"
            );
        }
    }

    /// Aborts the attempts in flight, settles the completed ones and releases the claims of the
    /// rest, so that another replica need not wait for their leases to expire.
    async fn abort(&mut self) {
        let mut unsettled = Vec::new();
        self.attempts.abort_all();
        while let Some(result) = self.attempts.join_next().await {
            match result {
                Ok(settlement) => self.settle_queue.push(settlement),
                Err(error) => {
                    let mut in_flight = self.in_flight.iter();
                    let aborted = in_flight.find(|(_, attempt)| attempt.task == error.id());
                    unsettled.extend(aborted.map(|((id, ..), _)| *id));
                }
            }
        }
        loop {
            self.settle_queue.start();
            if !self.settle_queue.is_running() {
                break;
            }
            let settled = self.settle_queue.settled().await;
            self.on_settled(settled).await;
        }
        unsettled.extend(self.settle_queue.postponed_ids());
        // Acknowledge first: a released message that is still in the queue would be sent twice.
        self.acks.release_all();
        let is_acknowledged =
            self.source.subscription().is_some() && self.acknowledge().await.is_ok();
        if is_acknowledged && !unsettled.is_empty() {
            let queue = self.kind.queue();
            tracing::warn!(queue, messages = unsettled.len(), "attempts aborted, claims released");
            claims::release(&self.engine, &unsettled).await;
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
