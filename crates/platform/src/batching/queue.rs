//! A bounded queue of jobs that a worker takes in batches.
//!
//! Jobs that arrive while the worker is busy form the next batch. The worker never waits for a batch
//! to fill up. A job gets its result after its batch was processed. A full queue rejects jobs immediately.
//!
//! Owners take turns, so an owner with thousands of jobs delays only its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{ErrorKind, Failure};

/// A unit of work in the queue.
pub trait Job {
    /// The jobs of one owner are processed in the order of their submission.
    fn owner(&self) -> &str;
    /// The share of a batch that the job takes, see [`QueueLimits`].
    fn weight(&self) -> usize;
}

/// Jobs that are queued for a worker.
pub struct JobQueue<J, A> {
    waiting: Mutex<Queues<J, A>>,
    ready: Notify,
    limits: QueueLimits,
}

/// Limits by weight.
#[derive(Debug, Clone, Copy)]
pub struct QueueLimits {
    /// The limit for one batch. A heavier job is a batch of its own.
    pub max_batch: usize,
    /// The limit for all queued jobs.
    pub max_queued: usize,
}

struct Queues<J, A> {
    /// By owner. No queue is empty.
    queues: HashMap<String, VecDeque<QueuedJob<J, A>>>,
    /// Owners in the order of their turns, each once.
    turns: VecDeque<String>,
    weight: usize,
}

/// A job and the channel for its result.
pub struct QueuedJob<J, A> {
    pub job: J,
    result: oneshot::Sender<(J, A)>,
}

impl<J, A> QueuedJob<J, A> {
    /// Sends the result, which the caller may no longer wait for. The job is returned to the caller, so
    /// that the caller's thread frees its memory instead of the worker.
    pub fn finish(self, result: A) {
        drop(self.result.send((self.job, result)));
    }

    /// Whether the caller has stopped waiting for the result.
    pub fn is_abandoned(&self) -> bool {
        self.result.is_closed()
    }
}

/// Why a job was not processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("too many requests wait for the database")]
    Full,
    #[error("the service stopped before the request was processed")]
    Stopped,
    /// The request may have been processed, and can be sent again.
    #[error("the database is not available")]
    NoDatabase,
}

impl Failure for SubmitError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Full => ErrorKind::Limited,
            Self::Stopped | Self::NoDatabase => ErrorKind::Unavailable,
        }
    }
}

impl<J: Job, A> JobQueue<J, A> {
    pub fn new(limits: QueueLimits) -> Self {
        let waiting = Queues { queues: HashMap::new(), turns: VecDeque::new(), weight: 0 };
        Self { waiting: Mutex::new(waiting), ready: Notify::new(), limits }
    }

    /// Queues a job and waits for its result. Returns the job too.
    pub async fn submit(&self, job: J) -> Result<(J, A), SubmitError> {
        let (result, receiver) = oneshot::channel();
        {
            let mut waiting = self.lock();
            // An empty queue accepts any job, so that a job above the limit can be processed.
            if waiting.weight > 0 && waiting.weight + job.weight() > self.limits.max_queued {
                return Err(SubmitError::Full);
            }
            waiting.push(QueuedJob { job, result });
        }
        self.ready.notify_one();
        receiver.await.map_err(|_gone| SubmitError::Stopped)
    }

    /// Waits for jobs and takes the next batch. After `stop` is canceled, returns the jobs that are left, then
    /// `None`.
    pub async fn next_batch(&self, stop: &CancellationToken) -> Option<Vec<QueuedJob<J, A>>> {
        loop {
            let is_stopping = stop.is_cancelled();
            let batch = self.take_batch();
            if is_stopping || !batch.is_empty() {
                return Some(batch).filter(|batch| !batch.is_empty());
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.ready.notified() => {}
            }
        }
    }

    /// Takes the next batch, which is empty when the queue is. Abandoned jobs are dropped.
    fn take_batch(&self) -> Vec<QueuedJob<J, A>> {
        let mut waiting = self.lock();
        let mut batch = Vec::new();
        let mut weight = 0;
        while let Some(next) = waiting.front() {
            let next_weight = next.job.weight();
            if next.is_abandoned() {
                drop(waiting.pop());
            } else if batch.is_empty() || weight + next_weight <= self.limits.max_batch {
                weight += next_weight;
                batch.extend(waiting.pop());
            } else {
                break;
            }
        }
        batch
    }

    /// The weight of all queued jobs.
    pub fn queued_weight(&self) -> usize {
        self.lock().weight
    }

    fn lock(&self) -> MutexGuard<'_, Queues<J, A>> {
        // The queue is consistent between any two statements that could panic.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Job, A> Queues<J, A> {
    fn push(&mut self, queued: QueuedJob<J, A>) {
        self.weight += queued.job.weight();
        match self.queues.get_mut(queued.job.owner()) {
            Some(queue) => queue.push_back(queued),
            None => {
                let owner = queued.job.owner().to_owned();
                self.turns.push_back(owner.clone());
                self.queues.insert(owner, VecDeque::from([queued]));
            }
        }
    }

    fn front(&self) -> Option<&QueuedJob<J, A>> {
        self.queues.get(self.turns.front()?)?.front()
    }

    /// Removes the next job and moves its owner to the end of the turns.
    fn pop(&mut self) -> Option<QueuedJob<J, A>> {
        let owner = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&owner)?;
        let queued = queue.pop_front()?;
        self.weight -= queued.job.weight();
        if queue.is_empty() {
            self.queues.remove(&owner);
        } else {
            self.turns.push_back(owner);
        }
        Some(queued)
    }
}

#[cfg(test)]
mod tests;
