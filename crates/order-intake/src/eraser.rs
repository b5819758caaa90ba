//! Erases the orders of requested erasures, batch by batch, and publishes an event for each batch.
//!
//! A batch is one transaction, so a process that is killed loses nothing: another replica continues with the
//! next batch. An erasure that fails is tried again later, and the others continue. Its failures and the time of its next
//! attempt are in the database, so that a restart does not shorten the wait, and all replicas keep it.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::erasure::{ShopperErased, erase};
use messaging::{Outbox, erase_events};
use platform::database::{DatabaseError, Pool};
use platform::{Clock, chain};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::store::{self, RunningErasure};

/// Orders in one transaction and one event.
const BATCH_ORDERS: i64 = 100;
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// A confirmation locks its erasure for a moment; another replica locks it for a batch.
const LOCKED_INTERVAL: Duration = Duration::from_millis(50);
/// The wait after the first failure of an erasure. It doubles with each further one in a row.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

pub(crate) struct Eraser {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    pub(crate) wake: Arc<Notify>,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A batch was erased, or failed and waits for its next attempt.
    Done,
    /// Another transaction has locked the only running erasures that are due.
    Locked,
    /// No erasure is running, or all wait for their next attempt.
    Idle,
}

impl Eraser {
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let step = self.step().await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "erasures cannot be read");
                Step::Idle
            });
            let pause = match step {
                Step::Done => Duration::ZERO,
                Step::Locked => LOCKED_INTERVAL,
                Step::Idle => POLL_INTERVAL,
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Erases one batch of the oldest erasure that is not waiting for its next attempt.
    pub(crate) async fn step(&self) -> Result<Step, DatabaseError> {
        let mut conn = self.pool.get().await?;
        let mut current = None;
        let erased: Result<Step, DatabaseError> = conn
            .transaction(async |conn| {
                let Some(erasure) = store::lock_running(conn).await? else {
                    let is_locked = store::is_any_due(conn).await?;
                    return Ok(if is_locked { Step::Locked } else { Step::Idle });
                };
                let erasure = current.insert(erasure);
                self.erase_batch(conn, erasure).await?;
                Ok(Step::Done)
            })
            .await;
        match (current, erased) {
            (Some(erasure), Err(error)) => {
                // The connection may be lost.
                drop(conn);
                self.postpone(&erasure, &error).await?;
                Ok(Step::Done)
            }
            (_, erased) => erased,
        }
    }

    async fn postpone(
        &self,
        erasure: &RunningErasure,
        error: &DatabaseError,
    ) -> Result<(), DatabaseError> {
        let backoff = backoff(erasure.failures);
        tracing::warn!(
            erasure.id = %erasure.id, error = chain(error), ?backoff,
            "a batch of an erasure is tried again"
        );
        let mut conn = self.pool.get().await?;
        store::postpone_erasure(&mut conn, erasure, backoff).await
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

/// The wait after a failure, by the number of earlier failures in a row.
fn backoff(failures: i32) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.unsigned_abs());
    MIN_BACKOFF.saturating_mul(doubled).min(MAX_BACKOFF)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_after_a_failure_doubles_up_to_five_minutes() {
        let seconds = [0, 1, 2, 8, 9, 1000].map(|failures| backoff(failures).as_secs());
        assert_eq!(seconds, [1, 2, 4, 256, 300, 300]);
    }
}
