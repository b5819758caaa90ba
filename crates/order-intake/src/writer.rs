//! Stores publications, one batch per transaction.
//!
//! Orders do not use `platform::batching::Batches`: one statement without an explicit transaction stores a
//! batch, and one writer for each replica makes larger batches than several workers.
//!
//! A publication gets its result after its transaction committed. If a batch cannot be written as a whole,
//! its publications are written one by one, so that an invalid one fails alone.
//!
//! See docs/decisions/intake-write-path.md.

mod alone;
mod metrics;
mod publish_error;
mod save;

use std::sync::Arc;

use diesel_async::pooled_connection::PoolableConnection as _;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use domain::order::OrderOutcome;
use messaging::Outbox;
use platform::chain;
use platform::database::{DatabaseError, Pool, lock_timed_out, transaction};
use tokio_util::sync::CancellationToken;

pub(crate) use self::alone::store;
use self::metrics::Metrics;
pub(crate) use self::publish_error::{PublishError, PublishResult};
use self::publish_error::{is_timeout, may_affect_one_write};
pub(crate) use self::save::WriteResult;
use self::save::{QueuedJobs, keys, orders, publications, write_checked, write_optimistic};
use crate::store::{self, WriteError};
use crate::write_batch::Publication;
use platform::batching::{JobQueue, QueuedJob};

/// Retries of a batch after conflicts, before its publications are written one by one.
const BATCH_RETRIES: usize = 2;
/// Retries of a single publication after conflicts, before it fails.
const SINGLE_RETRIES: usize = 20;
/// Timeouts among publications written one by one, before the rest of the batch is rejected.
const MAX_TIMEOUTS: usize = 2;
/// Longest wait of the writer for a lock. Writers of other replicas hold theirs for a few milliseconds.
const LIMIT_LOCK_WAIT: &str = "SET lock_timeout = '100ms'";

/// Takes batches from the queue and stores them.
pub(crate) struct Writer {
    pool: Pool,
    /// A dedicated connection, so that readers cannot exhaust the pool and block the writer.
    conn: Option<AsyncPgConnection>,
    /// Whether all orders of the last batch were stored, so that [`store::WriteMode::Optimistic`] is likely to
    /// succeed again.
    optimistic: bool,
    outbox: Outbox,
    queue: Arc<JobQueue<Publication, WriteResult>>,
    metrics: Metrics,
}

impl Writer {
    pub(crate) fn new(
        pool: Pool,
        outbox: Outbox,
        queue: Arc<JobQueue<Publication, WriteResult>>,
    ) -> Self {
        Self { pool, conn: None, optimistic: true, outbox, queue, metrics: Metrics::new() }
    }

    /// Stores batches until `stop` is canceled, then drains the queue.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(queued) = self.queue.next_batch(&stop).await {
            self.store_batch(queued).await;
        }
    }

    fn finish(&self, queued: QueuedJobs, results: Vec<PublishResult>) {
        self.metrics.record_batch(&results);
        queued.into_iter().zip(results).for_each(|(queued, result)| queued.finish(Some(result)));
    }

    async fn store_batch(&mut self, mut queued: QueuedJobs) {
        // The same orders may still be locked, and would delay this batch too.
        if self.pool.has_owner_transactions() {
            queued = self.return_locked_to_requests(queued).await;
        }
        match self.store_together(&publications(&queued)).await {
            Ok(results) => self.finish(queued, results),
            Err(error) => {
                if lock_timed_out(&error) {
                    queued = self.return_locked_to_requests(queued).await;
                }
                self.store_individually(queued, error).await;
            }
        }
    }

    /// Gives publications with locked orders back to their requests, which store them alone. Returns the others.
    async fn return_locked_to_requests(&mut self, queued: QueuedJobs) -> QueuedJobs {
        let mut is_locked = Vec::new();
        {
            let publications = publications(&queued);
            let orders = orders(&publications);
            // Without the database, storing the batch fails for the same reason.
            let Ok(conn) = self.connection().await else { return queued };
            let Ok(locked) = store::locked_orders(&conn, &orders).await else { return queued };
            self.conn = Some(conn);
            let locked = |it: &&Publication| keys(it).any(|key| locked.contains(&key));
            is_locked.extend(publications.iter().map(locked));
        }
        let mut free = Vec::new();
        for (queued, is_locked) in queued.into_iter().zip(is_locked) {
            if is_locked { queued.finish(None) } else { free.push(queued) }
        }
        free
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
    async fn store_individually(&mut self, queued: QueuedJobs, error: WriteError) {
        let is_last = queued.len() == 1 && !lock_timed_out(&error);
        if is_last || !may_affect_one_write(&error) {
            return reject(queued, error.into());
        }
        tracing::warn!(error = chain(&error), "a batch failed and is stored one by one");
        let mut timeouts = 0;
        let mut queued = queued.into_iter().filter(|job| !job.is_abandoned());
        while let Some(next) = queued.next() {
            match self.store(&[&next.job], SINGLE_RETRIES).await {
                Ok(results) => self.finish(vec![next], results),
                Err(error) => {
                    timeouts += usize::from(is_timeout(&error));
                    if lock_timed_out(&error) {
                        next.finish(None);
                        if timeouts == MAX_TIMEOUTS {
                            return queued.for_each(|job| job.finish(None));
                        }
                        continue;
                    }
                    let continues = may_affect_one_write(&error) && timeouts < MAX_TIMEOUTS;
                    let error = PublishError::from(error);
                    next.finish(Some(Err(error.clone())));
                    if !continues {
                        return reject(queued, error);
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
            None => {
                let mut conn = self.pool.dedicated().await?;
                conn.batch_execute(LIMIT_LOCK_WAIT).await?;
                Ok(conn)
            }
        }
    }
}

fn reject(
    queued: impl IntoIterator<Item = QueuedJob<Publication, WriteResult>>,
    error: PublishError,
) {
    queued.into_iter().for_each(|job| job.finish(Some(Err(error.clone()))));
}
