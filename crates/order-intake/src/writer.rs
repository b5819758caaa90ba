//! Stores publications, one batch per transaction.
//!
//! A publication gets its result after its transaction committed. If a batch cannot be written as a whole,
//! its publications are written one by one, so that an invalid one fails alone.
//!
//! See docs/decisions/intake-write-path.md.

mod metrics;
mod publish_error;
mod save;

use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use diesel_async::pooled_connection::PoolableConnection as _;
use domain::order::OrderOutcome;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use messaging::Outbox;
use platform::chain;
use platform::database::{DatabaseError, Pool, transaction};
use tokio_util::sync::CancellationToken;

use self::metrics::Metrics;
pub(crate) use self::publish_error::{PublishError, PublishResult};
use self::publish_error::{is_timeout, may_affect_one_write};
use self::save::{QueuedWrites, publications, write_checked, write_optimistic};
use crate::store::{self, WriteError};
use crate::write_batch::Publication;
use platform::batching::{Job as _, QueuedWrite, WriteQueue};

/// Batches sent to PostgreSQL: the one that it executes and the next.
const MAX_IN_FLIGHT: usize = 2;
/// Retries of a batch after conflicts, before its publications are written one by one.
const BATCH_RETRIES: usize = 2;
/// Retries of a single publication after conflicts, before it fails.
const SINGLE_RETRIES: usize = 20;
/// Timeouts among publications written one by one, before the rest of the batch is rejected.
const MAX_TIMEOUTS: usize = 2;

/// Takes batches from the queue and stores them.
pub(crate) struct Writer {
    pool: Pool,
    /// A dedicated connection, so that readers cannot exhaust the pool and block the writer.
    conn: Option<AsyncPgConnection>,
    /// Whether all orders of the last batch were stored, so that [`store::WriteMode::Optimistic`] is likely to
    /// succeed again.
    optimistic: bool,
    outbox: Outbox,
    queue: Arc<WriteQueue<Publication, PublishResult>>,
    metrics: Metrics,
}

impl Writer {
    pub(crate) fn new(
        pool: Pool,
        outbox: Outbox,
        queue: Arc<WriteQueue<Publication, PublishResult>>,
    ) -> Self {
        Self { pool, conn: None, optimistic: true, outbox, queue, metrics: Metrics::new() }
    }

    /// Stores batches until `stop` is canceled, then drains the queue.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            let writes = tokio::select! {
                () = stop.cancelled() => break,
                writes = self.queue.next_batch(1) => writes,
            };
            self.store_all(writes, &stop).await;
        }
        loop {
            let writes = self.queue.take_batch();
            if writes.is_empty() {
                return;
            }
            self.store_all(writes, &stop).await;
        }
    }

    /// Stores a batch and the batches that arrive meanwhile.
    async fn store_all(&mut self, writes: QueuedWrites, stop: &CancellationToken) {
        if !self.optimistic {
            return self.store_batch(writes).await;
        }
        match self.connection().await {
            Ok(conn) => {
                let (failed, is_usable) = self.store_optimistically(&conn, writes, stop).await;
                self.conn = Some(conn).filter(|_| is_usable);
                for (writes, error) in failed {
                    match error {
                        WriteError::Conflict => self.store_batch(writes).await,
                        error => self.store_individually(writes, error).await,
                    }
                }
            }
            Err(error) => reject(writes, WriteError::from(error).into()),
        }
    }

    /// Stores this batch and the following ones in [`store::WriteMode::Optimistic`], until one fails. Returns the
    /// batches that were not stored, and whether the connection can be used again.
    ///
    /// The next batch is sent before the current one is committed, once it is as large. PostgreSQL is
    /// never idle, and batches do not shrink.
    async fn store_optimistically(
        &self,
        conn: &AsyncPgConnection,
        first: QueuedWrites,
        stop: &CancellationToken,
    ) -> (Vec<(QueuedWrites, WriteError)>, bool) {
        let mut failed = Vec::new();
        let mut is_usable = true;
        let mut in_flight = FuturesOrdered::new();
        let mut wanted = weight(&first);
        in_flight.push_back(write_optimistic(conn, &self.outbox, first));
        while !in_flight.is_empty() {
            let accepts_more = failed.is_empty() && is_usable && !stop.is_cancelled();
            let done = tokio::select! {
                biased;
                Some(done) = in_flight.next() => done,
                writes = self.queue.next_batch(wanted),
                    if accepts_more && in_flight.len() < MAX_IN_FLIGHT =>
                {
                    wanted = weight(&writes);
                    in_flight.push_back(write_optimistic(conn, &self.outbox, writes));
                    continue;
                }
                else => break,
            };
            is_usable &= !matches!(&done, (_, Err(WriteError::Database(_))));
            match done {
                (writes, Ok(results)) => self.finish(writes, results),
                (writes, Err(error)) => failed.push((writes, error)),
            }
        }
        (failed, is_usable)
    }

    fn finish(&self, writes: QueuedWrites, results: Vec<PublishResult>) {
        self.metrics.record_batch(&results);
        writes.into_iter().zip(results).for_each(|(write, result)| write.finish(result));
    }

    async fn store_batch(&mut self, writes: QueuedWrites) {
        let max_retries = if writes.len() > 1 { BATCH_RETRIES } else { SINGLE_RETRIES };
        match self.store(&publications(&writes), max_retries).await {
            Ok(results) => {
                let mut outcomes = results.iter().flatten().flatten();
                self.optimistic = outcomes.all(|outcome| *outcome == OrderOutcome::Stored);
                self.finish(writes, results);
            }
            Err(error) => self.store_individually(writes, error).await,
        }
    }

    /// Stores the publications of a failed batch one by one, unless all of them would fail again.
    async fn store_individually(&mut self, writes: QueuedWrites, error: WriteError) {
        if writes.len() == 1 || !may_affect_one_write(&error) {
            return reject(writes, error.into());
        }
        tracing::warn!(error = chain(&error), "a batch failed and is stored one by one");
        let mut timeouts = 0;
        let mut writes = writes.into_iter().filter(|write| !write.is_abandoned());
        while let Some(write) = writes.next() {
            match self.store(&[&write.job], SINGLE_RETRIES).await {
                Ok(results) => self.finish(vec![write], results),
                Err(error) => {
                    timeouts += usize::from(is_timeout(&error));
                    let continues = may_affect_one_write(&error) && timeouts < MAX_TIMEOUTS;
                    let error = PublishError::from(error);
                    write.finish(Err(error.clone()));
                    if !continues {
                        return reject(writes, error);
                    }
                }
            }
        }
    }

    /// Stores publications in [`store::WriteMode::Checked`], with retries after conflicts.
    async fn store(
        &mut self,
        publications: &[&Publication],
        max_retries: usize,
    ) -> Result<Vec<PublishResult>, WriteError> {
        let mut conn = self.connection().await?;
        let mut retries = 0;
        loop {
            let stored = if retries == 0 {
                write_checked(&conn, &self.outbox, publications).await
            } else {
                transaction(&mut conn, async |conn| {
                    store::serialize_retries(conn).await?;
                    write_checked(conn, &self.outbox, publications).await
                })
                .await
            };
            match stored {
                Err(WriteError::Conflict) if retries < max_retries => retries += 1,
                Err(WriteError::Database(error)) => return Err(error.into()),
                stored => {
                    self.conn = Some(conn);
                    return stored;
                }
            }
        }
    }

    /// Takes the connection or opens a new one. The caller puts it back only if it is still usable.
    async fn connection(&mut self) -> Result<AsyncPgConnection, DatabaseError> {
        match self.conn.take_if(|conn| !conn.is_broken()) {
            Some(conn) => Ok(conn),
            None => self.pool.dedicated().await,
        }
    }
}

fn weight(writes: &QueuedWrites) -> usize {
    writes.iter().map(|write| write.job.weight()).sum()
}

fn reject(
    writes: impl IntoIterator<Item = QueuedWrite<Publication, PublishResult>>,
    error: PublishError,
) {
    writes.into_iter().for_each(|write| write.finish(Err(error.clone())));
}
