//! Collects the results of attempts and settles them in batches, one batch at a time. Results whose rows other
//! transactions have locked are tried again in batches of their own, between those of new results.

use std::sync::Arc;
use std::time::Duration;

use platform::retry::Backoff;
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use super::locked_results::LockedResults;
use crate::engine::Engine;
use crate::outcome::Decision;
use crate::settlement::Settlement;
use crate::settler::{SettledBatch, Settler};

/// A batch starts when it has this many results, or this long after the first.
const BATCH_SIZE: usize = 64;
const MAX_BATCH_DELAY: Duration = Duration::from_millis(4);
/// Results that are tried again in one batch. Each whose row is still locked delays the others by 10 ms.
const MAX_RETRIED: usize = 8;
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
    locked: LockedResults,
    /// Whether the last batch was one of results whose rows were locked.
    retried_last: bool,
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
            locked: LockedResults::default(),
            retried_last: false,
        }
    }

    pub(super) fn push(&mut self, settlement: Settlement) {
        if self.completed.is_empty() {
            self.start_by = Instant::now() + MAX_BATCH_DELAY;
        }
        self.completed.push(settlement);
    }

    pub(super) fn is_due(&self) -> bool {
        let now = Instant::now();
        let is_retry_due = self.locked.due_at().is_some_and(|at| at <= now);
        self.completed.len() >= BATCH_SIZE || self.start_by <= now || is_retry_due
    }

    /// Whether no batch is running and no result waits for one.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_running()
            && self.completed.is_empty()
            && self.postponed.is_empty()
            && self.locked.is_empty()
    }

    /// Time at which a batch must start; `None` if nothing waits for one, or while a batch is running.
    pub(super) fn start_at(&self) -> Option<Instant> {
        let start_by = (!self.completed.is_empty()).then_some(self.start_by);
        let retry_at = (!self.postponed.is_empty()).then_some(self.retry_at);
        let starts = start_by.into_iter().chain(retry_at).chain(self.locked.due_at());
        starts.min().filter(|_| !self.is_running())
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
        let Some(settler) = self.settler.take() else { return };
        let batch = self.next_batch();
        if batch.is_empty() {
            self.settler = Some(settler);
        } else {
            self.running.spawn(settler.settle(batch));
        }
    }

    /// New results and those whose rows were locked take turns, so that neither waits for many of the others.
    fn next_batch(&mut self) -> Vec<Settlement> {
        if !self.retried_last || self.completed.is_empty() {
            let due = self.locked.take_due(Instant::now(), MAX_RETRIED);
            self.retried_last = !due.is_empty();
            if self.retried_last {
                return due;
            }
        }
        self.retried_last = false;
        let count = self.max_batch.min(self.completed.len());
        self.completed.drain(..count).collect()
    }

    /// Waits for the running batch and returns its settled messages. Cancel-safe.
    pub(super) async fn settled(&mut self) -> Vec<Settlement> {
        let Some(result) = self.running.join_next().await else {
            return std::future::pending().await;
        };
        let SettledBatch { settler, settled, postponed, locked } =
            result.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.settler = Some(settler);
        self.locked.batch_ended(locked, Instant::now());
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

    /// Lets results whose rows were locked be tried again without a pause.
    pub(super) fn end_pauses(&mut self) {
        self.locked.end_pauses(Instant::now());
    }

    /// Results that wait to be tried again.
    pub(super) fn waiting_ids(&self) -> Vec<Uuid> {
        self.postponed.iter().map(Settlement::id).chain(self.locked.ids()).collect()
    }
}
