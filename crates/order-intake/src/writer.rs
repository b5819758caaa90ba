//! Stores publications, one batch per transaction.
//!
//! Orders do not use `platform::batching::Batches`: one statement without an explicit transaction stores a
//! batch, and one writer for each replica makes larger batches than several workers.
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
use platform::batching::{QueuedWrite, WriteQueue};

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
        while let Some(writes) = self.queue.next_batch(&stop).await {
            self.store_batch(writes).await;
        }
    }

    fn finish(&self, writes: QueuedWrites, results: Vec<PublishResult>) {
        self.metrics.record_batch(&results);
        writes.into_iter().zip(results).for_each(|(write, result)| write.finish(result));
    }

    async fn store_batch(&mut self, writes: QueuedWrites) {
        match self.store_together(&publications(&writes)).await {
            Ok(results) => self.finish(writes, results),
            Err(error) => self.store_individually(writes, error).await,
        }
    }

    async fn store_together(
        &mut self,
        publications: &[&Publication],
    ) -> Result<Vec<PublishResult>, WriteError> {
        if self.optimistic {
            match self.store_optimistically(publications).await {
                Err(WriteError::Conflict) => {}
                stored => return stored,
            }
        }
        let max_retries = if publications.len() > 1 { BATCH_RETRIES } else { SINGLE_RETRIES };
        let results = self.store(publications, max_retries).await?;
        let mut outcomes = results.iter().flatten().flatten();
        self.optimistic = outcomes.all(|outcome| *outcome == OrderOutcome::Stored);
        Ok(results)
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

    async fn store_optimistically(
        &mut self,
        publications: &[&Publication],
    ) -> Result<Vec<PublishResult>, WriteError> {
        let conn = self.connection().await?;
        let stored = write_optimistic(&conn, &self.outbox, publications).await;
        self.conn = Some(conn).filter(|_| !matches!(stored, Err(WriteError::Database(_))));
        stored
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

fn reject(
    writes: impl IntoIterator<Item = QueuedWrite<Publication, PublishResult>>,
    error: PublishError,
) {
    writes.into_iter().for_each(|write| write.finish(Err(error.clone())));
}
