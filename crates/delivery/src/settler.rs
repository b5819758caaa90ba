//! Settles the results of attempts in batches: rows, log, windows and events in one transaction.
//!
//! A dead letter is published before its `deliveries` row is deleted.

use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::delivery::DeliveryDead;
use messaging::Publisher;
use platform::{
    ErrorKind, Failure, chain,
    database::{DatabaseError, transaction},
};
use uuid::Uuid;

use crate::dead_letters::{self, DeadLetterError, DeadLetters};
use crate::engine::{Engine, reconnect_backoff};
use crate::outcome::Decision;
use crate::settlement::Settlement;
use crate::store::{self, Windows};

/// A batch after [`Settler::settle`].
pub(crate) struct SettledBatch {
    pub(crate) settler: Settler,
    /// Settled, or logged as failed. Their broker messages can be acknowledged.
    pub(crate) settled: Vec<Settlement>,
    /// Dead messages whose dead letter could not be published; to be settled later.
    pub(crate) postponed: Vec<Settlement>,
}

/// Settles one batch at a time, over its own connection.
pub(crate) struct Settler {
    engine: Arc<Engine>,
    publisher: Publisher,
    windows: Windows,
    conn: Option<AsyncPgConnection>,
}

impl Settler {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        let windows = Windows::new(engine.settings.windows());
        Self { engine, publisher, windows, conn: None }
    }

    /// Settles a batch, and waits for the database if it is unavailable. A message that fails for
    /// another reason stays queued and is sent again when its lease expires.
    pub(crate) async fn settle(mut self, batch: Vec<Settlement>) -> SettledBatch {
        let (dead, mut settled): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|settlement| settlement.decision == Decision::Dead);
        self.settle_batch_or_each(&settled, &DeadLetters::default()).await;
        let mut postponed = Vec::new();
        if !dead.is_empty() {
            match self.publish_dead_letters(&dead).await {
                Ok(letters) => {
                    let is_rejected = |dead: &Settlement| letters.refused.contains(&key(dead));
                    let (rejected, published): (Vec<_>, Vec<_>) =
                        dead.into_iter().partition(is_rejected);
                    if !rejected.is_empty() {
                        tracing::warn!(messages = rejected.len(), "broker rejected dead letters");
                    }
                    self.settle_batch_or_each(&published, &letters).await;
                    settled.extend(published);
                    postponed = rejected;
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "publishing dead letters failed");
                    postponed = dead;
                }
            }
        }
        SettledBatch { settler: self, settled, postponed }
    }

    async fn publish_dead_letters(
        &mut self,
        dead: &[Settlement],
    ) -> Result<DeadLetters, DeadLetterError> {
        let mut conn = self.take_conn().await?;
        let letters = dead_letters::publish(&self.engine, &self.publisher, &mut conn, dead).await?;
        self.conn = Some(conn);
        Ok(letters)
    }

    /// Settles a batch, or each of its messages alone if the batch fails.
    async fn settle_batch_or_each(&mut self, batch: &[Settlement], letters: &DeadLetters) {
        match self.settle_with_retry(batch, letters).await {
            Ok(()) => {}
            Err(error) if batch.len() == 1 => log_unsettled(batch, &error),
            Err(_) => {
                for one in batch.chunks(1) {
                    if let Err(error) = self.settle_with_retry(one, letters).await {
                        log_unsettled(one, &error);
                    }
                }
            }
        }
    }

    async fn settle_with_retry(
        &mut self,
        batch: &[Settlement],
        letters: &DeadLetters,
    ) -> Result<(), DatabaseError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut backoff = reconnect_backoff();
        loop {
            match self.settle_once(batch, letters).await {
                Err(error) if is_transient(&error) => {
                    tracing::warn!(error = chain(&error), "settling failed, retrying");
                    tokio::time::sleep(backoff.pause()).await;
                }
                result => return result,
            }
        }
    }

    async fn settle_once(
        &mut self,
        batch: &[Settlement],
        letters: &DeadLetters,
    ) -> Result<(), DatabaseError> {
        let mut conn = self.take_conn().await?;
        let events = batch.iter().filter_map(|settlement| letters.published.get(&key(settlement)));
        self.settle_in_transaction(&mut conn, batch, events.collect()).await?;
        self.conn = Some(conn);
        Ok(())
    }

    /// Takes the connection. The caller puts it back after a success; a failed one is dropped.
    async fn take_conn(&mut self) -> Result<AsyncPgConnection, DatabaseError> {
        match self.conn.take() {
            Some(conn) => Ok(conn),
            None => self.engine.pool.dedicated().await,
        }
    }

    async fn settle_in_transaction(
        &mut self,
        conn: &mut AsyncPgConnection,
        batch: &[Settlement],
        events: Vec<&DeliveryDead>,
    ) -> Result<(), DatabaseError> {
        let engine = &self.engine;
        let windows = &mut self.windows;
        let settled = transaction(conn, async |conn| {
            let now = engine.clock.now();
            let store::Settled { ids, unblocked } =
                store::settle(conn, now, windows, batch).await?;
            let settled: Vec<_> =
                batch.iter().filter(|settlement| ids.contains(&settlement.id())).collect();
            if !settled.is_empty() {
                engine.observer.on_settled(conn, &settled).await?;
            }
            let events = events.iter().filter(|dead| ids.contains(&dead.delivery));
            engine.outbox.append(conn, now, events.copied().cloned()).await?;
            Ok::<_, DatabaseError>(store::Settled { ids, unblocked })
        })
        .await;
        if settled.is_err() {
            self.windows.rolled_back();
        }
        let settled = settled?;
        engine.metrics.settled(batch, &settled.ids);
        let is_awaited = engine.settled.add(settled.ids);
        if is_awaited || settled.unblocked > 0 {
            engine.wake.notify_one();
        }
        Ok(())
    }
}

/// Identifies the dead letter of a message.
fn key(settlement: &Settlement) -> (Uuid, i32) {
    (settlement.message.id, settlement.message.replay_number)
}

/// Whether settling can succeed later. A partition that was dropped does not come back: such a
/// message is a duplicate of one that was settled long ago.
fn is_transient(error: &DatabaseError) -> bool {
    !store::is_partition_missing(error) && error.kind() == ErrorKind::Unavailable
}

fn log_unsettled(batch: &[Settlement], error: &DatabaseError) {
    for id in batch.iter().map(Settlement::id) {
        if store::is_partition_missing(error) {
            tracing::warn!(
                delivery.id = %id,
                "ignored a duplicate of delivery {id}, whose partition was dropped",
            );
        } else {
            tracing::error!(
                delivery.id = %id,
                error = chain(error),
                "settling delivery {id} failed, it is sent again when its lease expires",
            );
        }
    }
}
