//! Confirmations that are being placed, and the capacity for more.

use std::collections::HashMap;

use platform::{MAX_BATCH_BYTES, database::DatabaseError};
use tokio::task::{Id, JoinError, JoinSet};

use crate::store::confirmations::{Capacity, LeasedConfirmation};

pub(super) struct PlacingTasks {
    max_jobs: usize,
    tasks: JoinSet<Result<(), DatabaseError>>,
    jobs: HashMap<Id, Job>,
}

/// The confirmation of one task.
struct Job {
    position: i64,
    merchant: String,
    bytes: usize,
}

impl PlacingTasks {
    pub(super) fn new(max_jobs: usize) -> Self {
        Self { max_jobs, tasks: JoinSet::new(), jobs: HashMap::new() }
    }

    /// The free capacity, if there is any. The longest confirmation does not count: it can reach the limit of
    /// bytes alone and must not block the others.
    pub(super) fn capacity(&self) -> Option<Capacity> {
        let slots = self.max_jobs.saturating_sub(self.jobs.len());
        let lengths = || self.jobs.values().map(|job| job.bytes);
        let counted = lengths().sum::<usize>() - lengths().max().unwrap_or(0);
        let bytes = MAX_BATCH_BYTES.saturating_sub(counted);
        (slots > 0 && bytes > 0).then(|| Capacity {
            slots: slots.try_into().unwrap_or(i64::MAX),
            bytes: bytes.try_into().unwrap_or(i64::MAX),
            busy: self.jobs.values().map(|job| job.merchant.clone()).collect(),
        })
    }

    /// Starts a task for a confirmation. Separate tasks keep a slow merchant from delaying the
    /// others, and an open transaction from waiting until this future is polled.
    pub(super) fn begin<F>(
        &mut self,
        leased: LeasedConfirmation,
        work: impl FnOnce(LeasedConfirmation) -> F,
    ) where
        F: Future<Output = Result<(), DatabaseError>> + Send + 'static,
    {
        let job = Job {
            position: leased.position,
            merchant: leased.confirmed.merchant.to_string(),
            bytes: leased.bytes,
        };
        let task = self.tasks.spawn(work(leased)).id();
        self.jobs.insert(task, job);
    }

    /// Waits for a finished task and collects all others that have finished; `None` if no task is in
    /// flight. A failed confirmation is leased again when its lease expires.
    pub(super) async fn done(&mut self) -> Option<Result<(), DatabaseError>> {
        let first = self.tasks.join_next_with_id().await?;
        let mut done = self.remove(first);
        while let Some(next) = self.tasks.try_join_next_with_id() {
            done = done.and(self.remove(next));
        }
        Some(done)
    }

    fn remove(
        &mut self,
        ended: Result<(Id, Result<(), DatabaseError>), JoinError>,
    ) -> Result<(), DatabaseError> {
        let (id, done) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let job = self.jobs.get(&error.id());
                let position = job.map_or(0, |job| job.position);
                tracing::error!(%error, "task for confirmation {position} panicked");
                (error.id(), Ok(()))
            }
        };
        self.jobs.remove(&id);
        done
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use platform::Clock;

    use super::*;
    use crate::tests::confirmed;

    const MIB: usize = 1024 * 1024;

    fn leased(bytes: usize) -> LeasedConfirmation {
        LeasedConfirmation {
            position: 1,
            confirmed: confirmed("R-1", "1001", &[]),
            received_at: Clock::system().now(),
            erased: false,
            traceparent: None,
            has_order: false,
            bytes,
        }
    }

    #[tokio::test]
    async fn the_longest_confirmation_does_not_block_the_others() {
        let mut tasks = PlacingTasks::new(4);
        let mut left = Vec::new();
        for mebibytes in [9, 3, 6] {
            tasks.begin(leased(mebibytes * MIB), |_| pending());
            left.push(tasks.capacity().map(|capacity| (capacity.slots, capacity.bytes >> 20)));
        }
        assert_eq!(left, [Some((3, 8)), Some((2, 5)), None]);
    }

    #[tokio::test]
    async fn merchants_are_busy_until_their_tasks_finish() {
        let mut tasks = PlacingTasks::new(3);
        tasks.begin(leased(0), |_| pending());
        tasks.begin(leased(0), |_| ready(Ok(())));
        assert_eq!(tasks.capacity().unwrap().busy, ["acme", "acme"]);
        assert!(tasks.done().await.unwrap().is_ok());
        assert_eq!(tasks.capacity().unwrap().busy, ["acme"]);
    }

    #[tokio::test]
    async fn a_panicking_task_releases_its_slot() {
        let mut tasks = PlacingTasks::new(1);
        tasks.begin(leased(0), async |_| panic!("on purpose"));
        assert_eq!(tasks.capacity(), None);
        assert!(tasks.done().await.unwrap().is_ok());
        assert!(tasks.capacity().is_some());
        assert!(tasks.done().await.is_none());
    }
}
