//! Erases the orders of requested erasures, batch by batch, and publishes an event for each batch.
//!
//! A batch is one transaction, so a process that is killed loses nothing: another replica continues with the
//! next batch.

use std::sync::Arc;
use std::time::Duration;

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

pub(crate) struct Eraser {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) outbox: Outbox,
    pub(crate) wake: Arc<Notify>,
}

impl Eraser {
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let has_more = self.step().await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "a batch of an erasure is tried again");
                false
            });
            let pause = if has_more { Duration::ZERO } else { POLL_INTERVAL };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Erases one batch. Returns false if there is none.
    async fn step(&self) -> Result<bool, DatabaseError> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        conn.transaction(async |conn| {
            let Some(erasure) = store::lock_running(conn).await? else { return Ok(false) };
            let RunningErasure { id, merchant, .. } = &erasure;
            let orders = store::next_orders(conn, *id, BATCH_ORDERS).await?;
            let erased_orders = store::erase_orders(conn, merchant, &orders, now).await?;
            let subjects: Vec<_> = orders.iter().map(|it| format!("{merchant}/{it}")).collect();
            let erased_events = erase_events(conn, &subjects, erase).await?;
            self.outbox.append(conn, now, [event(&erasure, &orders)]).await?;
            store::finish_batch(conn, *id, &orders, (erased_orders, erased_events)).await?;
            tracing::info!(
                erasure.id = %id, %merchant, batch = erasure.batches + 1, orders = orders.len(),
                "erased a batch of orders"
            );
            Ok(true)
        })
        .await
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
