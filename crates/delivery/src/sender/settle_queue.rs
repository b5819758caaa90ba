//! Collects the results of attempts and settles them in batches, one batch at a time.

use std::sync::Arc;
use std::time::Duration;

use platform::retry::Backoff;
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use crate::engine::Engine;
use crate::outcome::Decision;
use crate::settlement::Settlement;
use crate::settler::{SettledBatch, Settler};

/// A batch starts when it has this many results, or this long after the first.
const BATCH_SIZE: usize = 64;
const MAX_BATCH_DELAY: Duration = Duration::from_millis(4);
/// Delays before a rejected dead letter is published again, the first and the longest. Each
/// publishing delays other batches until the broker responds.
const DEAD_LETTER_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(10));

pub(super) struct SettleQueue {
    max_batch: usize,
    completed: Vec<Settlement>,
    /// Latest start of the next batch.
    start_by: Instant,
    /// Settles a batch in its own task, because the sender may wait for the database itself.
    running: JoinSet<SettledBatch>,
    /// `None` while a batch is running.
    settler: Option<Settler>,
    /// Dead messages whose dead letter was rejected.
    postponed: Vec<Settlement>,
    retry_at: Instant,
    retry_backoff: Backoff,
}

impl SettleQueue {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            max_batch: engine.settings.settle_batch.get(),
            completed: Vec::new(),
            start_by: Instant::now(),
            running: JoinSet::new(),
            settler: Some(Settler::new(engine)),
            postponed: Vec::new(),
            retry_at: Instant::now(),
            retry_backoff: Backoff::new(DEAD_LETTER_BACKOFF.0, DEAD_LETTER_BACKOFF.1),
        }
    }

    pub(super) fn push(&mut self, settlement: Settlement) {
        if self.completed.is_empty() {
            self.start_by = Instant::now() + MAX_BATCH_DELAY;
        }
        self.completed.push(settlement);
    }

    pub(super) fn is_due(&self) -> bool {
        self.completed.len() >= BATCH_SIZE || self.start_by <= Instant::now()
    }

    /// Whether no batch is running and no result waits for one.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_running() && self.completed.is_empty() && self.postponed.is_empty()
    }

    /// Time at which a batch must start; `None` if nothing waits for one, or while a batch is running.
    pub(super) fn start_at(&self) -> Option<Instant> {
        let start_by = (!self.completed.is_empty()).then_some(self.start_by);
        let retry_at = (!self.postponed.is_empty()).then_some(self.retry_at);
        start_by.into_iter().chain(retry_at).min().filter(|_| !self.is_running())
    }

    /// Starts a batch, unless one is running or nothing is due.
    pub(super) fn start(&mut self) {
        if self.retry_at <= Instant::now() {
            self.completed.append(&mut self.postponed);
        } else if !self.postponed.is_empty() {
            // The broker rejects dead letters now, so others would be rejected too.
            let is_dead = |settlement: &mut Settlement| settlement.decision == Decision::Dead;
            self.postponed.extend(self.completed.extract_if(.., is_dead));
        }
        if self.completed.is_empty() {
            return;
        }
        if let Some(settler) = self.settler.take() {
            let count = self.max_batch.min(self.completed.len());
            let batch = self.completed.drain(..count).collect();
            self.running.spawn(settler.settle(batch));
        }
    }

    /// Waits for the running batch and returns its settled messages. Cancel-safe.
    pub(super) async fn settled(&mut self) -> Vec<Settlement> {
        let Some(result) = self.running.join_next().await else {
            return std::future::pending().await;
        };
        let SettledBatch { settler, settled, postponed } =
            result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.settler = Some(settler);
        if !postponed.is_empty() {
            self.postponed.extend(postponed);
            self.retry_at = Instant::now() + self.retry_backoff.pause();
        } else if self.postponed.is_empty() {
            self.retry_backoff.reset();
        }
        settled
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn postponed_ids(&self) -> Vec<Uuid> {
        self.postponed.iter().map(Settlement::id).collect()
    }
}
