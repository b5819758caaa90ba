//! Settles the results of attempts in batches: rows, log, windows and events in one transaction.
//!
//! A dead letter is published before its `deliveries` row is deleted.
//!
//! Rows that other transactions have locked delay no other merchant. A batch waits a moment for its locks. Then each
//! of its results is settled alone, and those whose rows are locked are returned to be tried again later. The order
//! of an ordering key is kept, because its next message is sent after the result before it was settled.
//!
//! Lock order: the delivery, its message, the window of its endpoint, then the rows that the observer locks, for
//! example an exchange order. Transactions that lock a delivery or a message and a row of the observer's keep this
//! order.

use std::collections::HashMap;
use std::sync::Arc;

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use domain::delivery::DeliveryDead;
use messaging::Publisher;
use platform::{
    ErrorKind, Failure, chain,
    database::{DatabaseError, lock_timed_out, transaction},
};
use uuid::Uuid;

use crate::dead_letters::{self, DeadLetterError, DeadLetters, LetterKey};
use crate::engine::{Engine, reconnect_backoff};
use crate::outcome::Decision;
use crate::settlement::Settlement;
use crate::store::{self, Windows};

/// Longest wait for a lock, on the settler's connection. Other transactions hold theirs for the time of a batch.
const LOCK_WAIT: &str = "SET lock_timeout = '100ms'";
/// Longest wait for a lock of a result whose batch has waited for [`LOCK_WAIT`]. A batch of results whose rows are all
/// locked delays the results behind it by this time for each.
const SECOND_LOCK_WAIT: &str = "SET LOCAL lock_timeout = '10ms'";

/// A batch after [`Settler::settle`].
pub(crate) struct SettledBatch {
    pub(crate) settler: Settler,
    /// Settled, or logged as failed. Their broker messages can be acknowledged.
    pub(crate) settled: Vec<Settlement>,
    /// Dead messages whose dead letter could not be published; to be settled later.
    pub(crate) postponed: Vec<Settlement>,
    /// Results whose rows another transaction has locked; to be settled later.
    pub(crate) locked: Vec<Settlement>,
}

/// Results after an attempt to settle them.
#[derive(Default)]
struct Attempted {
    settled: Vec<Settlement>,
    locked: Vec<Settlement>,
}

/// Settles one batch at a time, over its own connection.
pub(crate) struct Settler {
    engine: Arc<Engine>,
    publisher: Publisher,
    windows: Windows,
    /// Events of dead letters that are published, until the deliveries are settled. A result that waits for a locked row
    /// is not published again.
    letters: HashMap<LetterKey, DeliveryDead>,
    conn: Option<AsyncPgConnection>,
}

impl Settler {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        let windows = Windows::new(engine.settings.windows());
        Self { engine, publisher, windows, letters: HashMap::new(), conn: None }
    }

    /// Settles a batch, and waits for the database if it is unavailable. A message that fails for
    /// another reason stays queued and is sent again when its lease expires.
    pub(crate) async fn settle(mut self, batch: Vec<Settlement>) -> SettledBatch {
        let needs_letter = |settlement: &Settlement| {
            settlement.decision == Decision::Dead && !self.letters.contains_key(&key(settlement))
        };
        let (dead, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(needs_letter);
        let Attempted { mut settled, mut locked } = self.settle_batch_or_each(others).await;
        let mut postponed = Vec::new();
        if !dead.is_empty() {
            match self.publish_dead_letters(&dead).await {
                Ok(DeadLetters { published, refused }) => {
                    self.letters.extend(published);
                    let is_rejected = |dead: &Settlement| refused.contains(&key(dead));
                    let (rejected, published): (Vec<_>, Vec<_>) =
                        dead.into_iter().partition(is_rejected);
                    if !rejected.is_empty() {
                        tracing::warn!(messages = rejected.len(), "broker rejected dead letters");
                    }
                    let attempted = self.settle_batch_or_each(published).await;
                    settled.extend(attempted.settled);
                    locked.extend(attempted.locked);
                    postponed = rejected;
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "publishing dead letters failed");
                    postponed = dead;
                }
            }
        }
        for settlement in &settled {
            self.letters.remove(&key(settlement));
        }
        SettledBatch { settler: self, settled, postponed, locked }
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

    /// Settles a batch, or each of its results alone if the batch fails.
    async fn settle_batch_or_each(&mut self, batch: Vec<Settlement>) -> Attempted {
        if self.settle_with_retry(&batch, None).await.is_ok() {
            return Attempted { settled: batch, locked: Vec::new() };
        }
        let mut attempted = Attempted::default();
        for one in batch {
            let second = Some(SECOND_LOCK_WAIT);
            match self.settle_with_retry(std::slice::from_ref(&one), second).await {
                Err(error) if lock_timed_out(&error) => {
                    tracing::warn!(delivery.id = %one.id(), "the result of an attempt waits for a locked row");
                    attempted.locked.push(one);
                    continue;
                }
                Err(error) => log_unsettled(one.id(), &error),
                Ok(()) => {}
            }
            attempted.settled.push(one);
        }
        attempted
    }

    async fn settle_with_retry(
        &mut self,
        batch: &[Settlement],
        lock_wait: Option<&str>,
    ) -> Result<(), DatabaseError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut backoff = reconnect_backoff();
        loop {
            match self.settle_once(batch, lock_wait).await {
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
        lock_wait: Option<&str>,
    ) -> Result<(), DatabaseError> {
        let mut conn = self.take_conn().await?;
        let events = batch.iter().filter_map(|settlement| self.letters.get(&key(settlement)));
        let events: Vec<_> = events.cloned().collect();
        let settled = self.settle_in_transaction(&mut conn, batch, events, lock_wait).await;
        let is_usable = match &settled {
            Ok(()) => true,
            Err(error) => lock_timed_out(error),
        };
        if is_usable {
            self.conn = Some(conn);
        }
        settled
    }

    /// Takes the connection. The caller puts it back after a success or a lock time-out; a failed one is dropped.
    async fn take_conn(&mut self) -> Result<AsyncPgConnection, DatabaseError> {
        if let Some(conn) = self.conn.take() {
            return Ok(conn);
        }
        let mut conn = self.engine.pool.dedicated().await?;
        conn.batch_execute(LOCK_WAIT).await?;
        Ok(conn)
    }

    async fn settle_in_transaction(
        &mut self,
        conn: &mut AsyncPgConnection,
        batch: &[Settlement],
        events: Vec<DeliveryDead>,
        lock_wait: Option<&str>,
    ) -> Result<(), DatabaseError> {
        let engine = &self.engine;
        let windows = &mut self.windows;
        let settled = transaction(conn, async |conn| {
            if let Some(lock_wait) = lock_wait {
                conn.batch_execute(lock_wait).await?;
            }
            let now = engine.clock.now();
            let store::Settled { ids, unblocked } =
                store::settle(conn, now, windows, batch).await?;
            let settled: Vec<_> =
                batch.iter().filter(|settlement| ids.contains(&settlement.id())).collect();
            if !settled.is_empty() {
                engine.observer.on_settled(&engine.writer, conn, &settled).await?;
            }
            let events = events.iter().filter(|dead| ids.contains(&dead.delivery));
            engine.outbox.append(conn, now, events.cloned()).await?;
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
fn key(settlement: &Settlement) -> LetterKey {
    (settlement.message.id, settlement.message.replay_number)
}

/// Whether settling can succeed later, after a pause in which no other result is settled. A partition that was dropped
/// does not come back: such a message is a duplicate of one that was settled long ago. A locked row keeps only its own
/// results waiting.
fn is_transient(error: &DatabaseError) -> bool {
    !store::is_partition_missing(error)
        && !lock_timed_out(error)
        && error.kind() == ErrorKind::Unavailable
}

fn log_unsettled(id: Uuid, error: &DatabaseError) {
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
