//! Sends the messages of one kind: receives them from the work queue, runs the attempts, settles.
//!
//! A message is acknowledged after it is settled, with two exceptions: a slow message (see
//! `AckTracker`) and a duplicate of one in flight. If the process dies, the lease of such a message
//! expires and it is sent again. If the broker connection is lost, attempts continue and are
//! settled; the claim check drops the redelivered copies.

mod attempts;
mod claims;
mod locked_results;
mod queue_source;
mod run_attempt;
mod settle_queue;

use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use messaging::{BrokerError, Incoming};
use platform::MemoryPermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::queue_message::QueueMessage;
use crate::settlement::Settlement;
use attempts::Attempts;
use claims::{extract_paused, still_claimed};
use queue_source::QueueSource;
use settle_queue::SettleQueue;

/// Interval of acknowledging slow attempts, and settled ones that are too few for a group.
const ACKNOWLEDGE_INTERVAL: Duration = Duration::from_millis(250);
/// Messages that are received at once. The memory budget bounds the messages in flight.
const MAX_RECEIVED: usize = 512;
/// Time to settle and to release claims after the drain deadline.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(1500);

pub(crate) struct Sender {
    engine: Arc<Engine>,
    kind: MessageKind,
    source: QueueSource,
    attempts: Attempts,
    settle_queue: SettleQueue,
    stop: CancellationToken,
    /// Attempts that still run at the drain deadline are aborted.
    drain_deadline: CancellationToken,
}

impl Sender {
    pub(crate) fn new(
        engine: Arc<Engine>,
        kind: MessageKind,
        (stop, drain_deadline): (CancellationToken, CancellationToken),
    ) -> Self {
        Self {
            source: QueueSource::open(engine.clone(), kind),
            attempts: Attempts::default(),
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
        let mut ticks = tokio::time::interval(ACKNOWLEDGE_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let settle_at = self.settle_queue.start_at();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = ticks.tick(), if self.source.awaits_acknowledgement() => {
                    self.acknowledge().await;
                }
                settled = self.settle_queue.settled() => self.on_settled(settled).await,
                Some(completed) = self.attempts.completed() => self.on_completed(completed),
                () = sleep_until(settle_at) => {}
                received = self.source.next(MAX_RECEIVED) => self.on_received(received).await,
            }
            // Without running attempts, a batch has nothing more to wait for.
            if !self.attempts.are_running() || self.settle_queue.is_due() {
                self.settle_queue.start();
            }
        }
        self.shut_down().await;
    }

    async fn on_received(&mut self, received: Result<Vec<(Incoming, MemoryPermit)>, BrokerError>) {
        let sent = match received {
            Ok(batch) => self.send(batch).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            self.source.reconnect(&error);
        }
    }

    async fn send(&mut self, batch: Vec<(Incoming, MemoryPermit)>) -> Result<(), BrokerError> {
        let mut messages = self.source.parse(batch).await?;
        if messages.iter().any(|message| message.maybe_duplicate) {
            // The check may take long. By then the other messages may be duplicates too.
            let tags: Vec<_> = messages.iter().map(|message| message.tag.tag).collect();
            tokio::select! {
                claimed = still_claimed(&self.engine.pool, messages) => messages = claimed,
                () = self.stop.cancelled() => {
                    messages = Vec::new();
                    self.source.requeue(&tags).await?;
                }
            }
        }
        let paused = extract_paused(&self.engine, &mut messages);
        messages.into_iter().for_each(|message| self.start(message));
        // Last, because it may wait for the database.
        if !paused.is_empty() {
            self.engine.release_claims(&paused).await;
        }
        self.source.acknowledge_group().await
    }

    /// Starts an attempt, unless it is in flight already.
    fn start(&mut self, message: QueueMessage) {
        let tag = message.tag;
        if let Some(started) = self.attempts.start(&self.engine, message) {
            self.source.started(tag, started);
        }
    }

    fn on_completed(&mut self, completed: Vec<Settlement>) {
        completed.into_iter().for_each(|settlement| self.settle_queue.push(settlement));
    }

    async fn on_settled(&mut self, settled: Vec<Settlement>) {
        for Settlement { message, .. } in &settled {
            self.attempts.settled(message.key());
            self.source.settled(message.tag);
        }
        if let Err(error) = self.source.acknowledge_group().await {
            self.source.reconnect(&error);
        }
    }

    async fn acknowledge(&mut self) {
        if let Err(error) = self.source.acknowledge().await {
            self.source.reconnect(&error);
        }
    }

    /// Completes and settles the attempts in flight, without receiving more.
    async fn shut_down(mut self) {
        if let Err(error) = self.source.cancel().await {
            self.source.reconnect(&error);
        }
        let drain_deadline = self.drain_deadline.clone();
        loop {
            self.settle_queue.start();
            if !self.attempts.are_running() && self.settle_queue.is_idle() {
                self.acknowledge().await;
                return;
            }
            let settle_at = self.settle_queue.start_at();
            tokio::select! {
                () = drain_deadline.cancelled() => break,
                settled = self.settle_queue.settled() => self.on_settled(settled).await,
                Some(completed) = self.attempts.completed() => self.on_completed(completed),
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
        let (completed, mut unsettled) = self.attempts.abort().await;
        self.on_completed(completed);
        self.settle_queue.end_pauses();
        loop {
            self.settle_queue.start();
            if !self.settle_queue.is_running() {
                break;
            }
            let settled = self.settle_queue.settled().await;
            self.on_settled(settled).await;
        }
        unsettled.extend(self.settle_queue.waiting_ids());
        // Acknowledge first: a released message that is still in the queue would be sent twice.
        if self.source.acknowledge_all().await && !unsettled.is_empty() {
            let queue = self.kind.queue();
            tracing::warn!(queue, messages = unsettled.len(), "attempts aborted, claims released");
            self.engine.release_claims(&unsettled).await;
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
