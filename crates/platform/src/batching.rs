//! Requests that are processed together: one transaction for many.
//!
//! A request that arrives while nothing is processed is processed at once. Requests that arrive meanwhile form
//! the next batch, so a busy service does the work of a transaction and its statements once for many requests.
//! A batch waits for no row that another transaction has locked: requests about such rows, and all requests of
//! a batch that failed, are processed alone, each in its own transaction. So an invalid or slow request delays
//! no other. If the database is the cause, all requests of the batch fail.
//!
//! ```text
//! run(job) --> JobQueue --> worker: process(jobs, Batch) in one transaction
//!    |                           |
//!    |                           +--> Some(result): the response
//!    |                           +--> None: the job cannot be done here (locked row, key of another job of the
//!    |                           |    batch, full batch), or the whole batch failed
//!    |                           v
//!    +--> too large --------> slot --> process([job], Alone) in its own transaction, which waits for locks
//! ```
//!
//! A handler works in this order: lock and load the rows of all jobs (in a batch it skips locked rows); read the
//! idempotency keys under these locks; decide each job in memory; write all changes; insert the keys with their
//! responses. A job that is refused has changed nothing.
//!
//! See docs/decisions/request-batches.md.

mod metrics;
mod queue;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

pub use queue::{Job, JobQueue, QueueLimits, QueuedJob, SubmitError};

use self::metrics::Metrics;
use crate::database::{DatabaseError, Pool, deadlocked, timed_out};
use crate::{ErrorKind, Failure, Process, chain};

/// Batches that are processed at the same time. More would make each of them smaller.
const WORKERS: usize = 2;
const LIMITS: QueueLimits = QueueLimits { max_batch: 64, max_queued: 100_000 };
/// Attempts to process a request alone, while other transactions insert the same rows.
const MAX_ATTEMPTS_ALONE: usize = 20;

/// How a request is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processing {
    /// With others. Rows that another transaction has locked are skipped.
    Batch,
    /// In a transaction of its own, which waits for locked rows.
    Alone,
}

/// The results of the requests of a batch, in order. `None` for a request that must be processed alone.
pub type BatchResults<T, E> = Vec<Option<Result<T, E>>>;

/// Processes requests in a transaction.
pub trait BatchHandler: Send + Sync + 'static {
    type Job: Job + Send + Sync + 'static;
    type Response: Send + 'static;
    type Error: From<DatabaseError>
        + From<diesel::result::Error>
        + From<SubmitError>
        + Failure
        + Send
        + 'static;

    /// Processes these requests. An error rolls the transaction back. The error of a single request must leave
    /// no change of that request in the transaction.
    fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&Self::Job],
        processing: Processing,
    ) -> impl Future<Output = Result<BatchResults<Self::Response, Self::Error>, Self::Error>> + Send;

    /// Whether another transaction inserted the same rows first, so that a new attempt finds them.
    fn is_conflict(error: &Self::Error) -> bool;
}

/// The result of a request in a batch.
type JobResult<H> = Option<Result<<H as BatchHandler>::Response, <H as BatchHandler>::Error>>;

/// The queue of a handler's requests.
pub struct Batches<H: BatchHandler> {
    handler: H,
    pool: Pool,
    metrics: Metrics,
    queue: JobQueue<H::Job, JobResult<H>>,
}

impl<H: BatchHandler> Batches<H> {
    pub fn start(name: &'static str, process: &Process, handler: H) -> Arc<Self> {
        let batches = Arc::new(Self {
            handler,
            pool: process.pool.clone(),
            metrics: Metrics::new(name),
            queue: JobQueue::new(LIMITS),
        });
        for _ in 0..WORKERS {
            let batches = batches.clone();
            process.tasks.spawn(name, |stop| async move { batches.work(stop).await });
        }
        batches
    }

    /// Processes a request with others that wait, or alone.
    pub async fn run(&self, job: H::Job) -> Result<H::Response, H::Error> {
        if is_large(&job) {
            return self.run_alone(&job).await;
        }
        match self.queue.submit(job).await? {
            (_, Some(result)) => result,
            (job, None) => self.run_alone(&job).await,
        }
    }

    /// Processes batches until `stop` is canceled, then drains the queue.
    async fn work(&self, stop: CancellationToken) {
        while let Some(batch) = self.queue.next_batch(&stop).await {
            self.process(batch).await;
        }
    }

    async fn process(&self, batch: Vec<QueuedJob<H::Job, JobResult<H>>>) {
        let jobs: Vec<_> = batch.iter().map(|queued| &queued.job).collect();
        self.metrics.record_batch(jobs.len());
        // A panic must not end the worker. The request that caused it panics again alone.
        let processed = AssertUnwindSafe(self.batch(&jobs)).catch_unwind();
        let results = match processed.await {
            Ok(Ok(results)) => results,
            Ok(Err(error)) if may_affect_one_request::<H>(&error) => {
                if error.kind() == ErrorKind::Internal {
                    tracing::warn!(
                        error = chain(&error),
                        "a batch failed; its requests are processed alone"
                    );
                }
                Vec::new()
            }
            Ok(Err(error)) => {
                tracing::warn!(error = chain(&error), "a batch failed");
                jobs.iter().map(|_| Some(Err(SubmitError::NoDatabase.into()))).collect()
            }
            Err(_panic) => Vec::new(),
        };
        // Requests without a result are processed alone.
        let results = results.into_iter().chain(std::iter::repeat_with(|| None));
        batch.into_iter().zip(results).for_each(|(queued, result)| queued.finish(result));
    }

    async fn batch(
        &self,
        jobs: &[&H::Job],
    ) -> Result<BatchResults<H::Response, H::Error>, H::Error> {
        let mut conn = self.pool.get().await?;
        conn.transaction(async |conn| self.handler.process(conn, jobs, Processing::Batch).await)
            .await
    }

    async fn run_alone(&self, job: &H::Job) -> Result<H::Response, H::Error> {
        self.metrics.record_alone();
        let jobs = [job];
        let slots = &self.pool.owner_transactions;
        let slots = if is_large(job) { &slots.large } else { &slots.normal };
        for _ in 0..MAX_ATTEMPTS_ALONE {
            let process = self.pool.transaction_in(slots, job.owner(), async |conn| {
                self.handler.process(conn, &jobs, Processing::Alone).await
            });
            match process.await {
                Ok(results) => {
                    if let Some(result) = results.into_iter().flatten().next() {
                        return result;
                    }
                }
                Err(error) if H::is_conflict(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(DatabaseError::Contended.into())
    }

    /// The weight of the queued requests.
    pub fn queued_weight(&self) -> usize {
        self.queue.queued_weight()
    }
}

/// Whether the job would be a batch of its own, which could occupy the workers.
fn is_large<J: Job>(job: &J) -> bool {
    job.weight() > LIMITS.max_batch
}

/// Whether requests of a failed batch could succeed alone. After a lost connection the batch may have been committed,
/// and its requests must not be repeated here.
fn may_affect_one_request<H: BatchHandler>(error: &H::Error) -> bool {
    error.kind() != ErrorKind::Unavailable
        || H::is_conflict(error)
        || timed_out(error)
        || deadlocked(error)
}
