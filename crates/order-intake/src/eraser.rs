//! Erases the orders of requested erasures, batch by batch, and publishes an event for each batch.
//!
//! A batch is one transaction, so a process that is killed loses nothing: another replica continues with the
//! next batch. An erasure that fails is tried again later, and the others continue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::erasure::{ShopperErased, erase};
use messaging::{Outbox, erase_events};
use platform::database::{DatabaseError, Pool};
use platform::{Clock, chain};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::store::{self, RunningErasure};

/// Orders in one transaction and one event.
const BATCH_ORDERS: i64 = 100;
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A confirmation locks its erasure for a moment; another replica locks it for a batch.
const LOCKED_INTERVAL: Duration = Duration::from_millis(50);
/// The wait after the first failure of an erasure. It doubles with each further one.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

pub(crate) struct Eraser {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    pub(crate) wake: Arc<Notify>,
    /// Erasures that failed. They wait, so that the others continue.
    pub(crate) failed: HashMap<Uuid, Failure>,
}

/// The last failure of an erasure.
pub(crate) struct Failure {
    backoff: Duration,
    next_attempt_at: Instant,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A batch was erased, or failed and waits for its next attempt.
    Done,
    /// Another transaction has locked the only running erasures.
    Locked,
    /// No erasure is running, or all wait for their next attempt.
    Idle,
}

impl Eraser {
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let step = self.step().await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "erasures cannot be read");
                Step::Idle
            });
            let pause = match step {
                Step::Done => Duration::ZERO,
                Step::Locked => LOCKED_INTERVAL,
                Step::Idle => self.next_attempt().unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL),
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// The wait until the next erasure that failed is tried again.
    fn next_attempt(&self) -> Option<Duration> {
        let attempts = self.failed.values().map(|failure| failure.next_attempt_at);
        attempts.min().map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Erases one batch of the oldest erasure that is not waiting for its next attempt.
    pub(crate) async fn step(&mut self) -> Result<Step, DatabaseError> {
        let now = Instant::now();
        let waiting = self.failed.iter().filter(|(_, failure)| failure.next_attempt_at > now);
        let waiting: Vec<_> = waiting.map(|(id, _)| *id).collect();
        let mut conn = self.pool.get().await?;
        let mut current = None;
        let erased: Result<Step, DatabaseError> = conn
            .transaction(async |conn| {
                let Some(erasure) = store::lock_running(conn, &waiting).await? else {
                    let is_locked = store::is_any_running(conn, &waiting).await?;
                    return Ok(if is_locked { Step::Locked } else { Step::Idle });
                };
                current = Some(erasure.id);
                self.erase_batch(conn, &erasure).await?;
                Ok(Step::Done)
            })
            .await;
        match (current, erased) {
            (Some(id), Err(error)) => self.postpone(id, &error),
            (None, Ok(Step::Idle)) => {
                // Those that are due again are no longer running: another replica has erased them.
                self.failed.retain(|_, failure| failure.next_attempt_at > now);
                return Ok(Step::Idle);
            }
            (None, erased) => return erased,
            (Some(id), Ok(_)) => {
                self.failed.remove(&id);
            }
        }
        Ok(Step::Done)
    }

    fn postpone(&mut self, id: Uuid, error: &DatabaseError) {
        let last = self.failed.get(&id).map(|failure| failure.backoff * 2);
        let backoff = last.unwrap_or(MIN_BACKOFF).min(MAX_BACKOFF);
        tracing::warn!(
            erasure.id = %id, error = chain(error), ?backoff, "a batch of an erasure is tried again"
        );
        self.failed.insert(id, Failure { backoff, next_attempt_at: Instant::now() + backoff });
    }

    async fn erase_batch(
        &self,
        conn: &mut AsyncPgConnection,
        erasure: &RunningErasure,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let RunningErasure { id, merchant, .. } = erasure;
        let orders = store::next_orders(conn, *id, BATCH_ORDERS).await?;
        let erased_orders = store::erase_orders(conn, merchant, &orders, now).await?;
        let subjects: Vec<_> = orders.iter().map(|it| format!("{merchant}/{it}")).collect();
        let erased_events = erase_events(conn, &subjects, erase).await?;
        self.outbox.append(conn, now, [event(erasure, &orders)]).await?;
        store::release_placeholders(conn, merchant, &orders).await?;
        store::finish_batch(conn, *id, &orders, (erased_orders, erased_events)).await?;
        tracing::info!(
            erasure.id = %id, %merchant, batch = erasure.batches + 1, orders = orders.len(),
            "erased a batch of orders"
        );
        Ok(())
    }
}

fn event(erasure: &RunningErasure, orders: &[String]) -> ShopperErased {
    ShopperErased {
        erasure_id: erasure.id,
        batch: erasure.batches + 1,
        merchant: erasure.merchant.clone(),
        order_identifiers: orders.to_vec(),
        // The returns of a giftee are erased once.
        email_sha256: erasure.email.clone().filter(|_| erasure.batches == 0),
        force: erasure.force,
        force_before: erasure.force_before,
    }
}
