//! Tasks that one replica of a service runs at a time: the one that holds an advisory lock.

use std::{sync::Arc, time::Duration};

use diesel_async::AsyncPgConnection;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{DatabaseError, Pool};
use crate::{chain, retry::Backoff};

/// Delays in milliseconds of the polls at the start, after found work and after a wake-up, before polling
/// slows down to `poll_interval`. The wake-up comes from inside the writer's transaction, so the first
/// polls may run before the commit.
const POLL_DELAYS: [u64; 6] = [0, 1, 3, 6, 15, 30];

/// Result of one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollOutcome {
    /// The poll found work. The next poll follows at once.
    Busy,
    /// The poll found a full batch. The next poll follows after this time, and wake-ups are ignored until
    /// then, so that the next batch is large too.
    Saturated(Duration),
    Idle,
}

/// A task that only the leader runs.
pub trait LeaderTask {
    /// Key of the advisory lock that the leader holds, unique within a database.
    const LOCK: i64;
    /// Log message for a failed poll.
    const FAILURE_MESSAGE: &'static str;
    type Error: std::error::Error + From<DatabaseError> + 'static;

    /// Does the work that is due. `conn` holds the leader's lock.
    fn poll(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> impl Future<Output = Result<PollOutcome, Self::Error>> + Send;
}

impl Pool {
    /// Polls while this replica holds the lock, when woken and every `poll_interval`. A replica without
    /// the lock tries to get it every `poll_interval`.
    pub async fn run_as_leader<T: LeaderTask>(
        self,
        mut task: T,
        wake: Arc<Notify>,
        poll_interval: Duration,
        stop: CancellationToken,
    ) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        let (mut leading, mut delays) = (None, POLL_DELAYS.iter());
        while !stop.is_cancelled() {
            let polled = self.poll_as_leader(&mut task, &mut leading).await;
            if polled.is_ok() {
                backoff.reset();
            }
            let (pause, wakeable) = match polled {
                Ok(Some(PollOutcome::Idle)) => {
                    let next = delays.next().map(|millis| Duration::from_millis(*millis));
                    (next.unwrap_or(poll_interval), true)
                }
                Ok(Some(outcome)) => {
                    delays = POLL_DELAYS.iter();
                    match outcome {
                        PollOutcome::Saturated(pause) => (pause, false),
                        _ => (Duration::ZERO, true),
                    }
                }
                // Another replica leads.
                Ok(None) => (poll_interval, false),
                Err(error) => {
                    tracing::warn!(error = chain(&error), "{}", T::FAILURE_MESSAGE);
                    leading = None;
                    // Wait longer than the other replicas, so that one of them can take over.
                    (poll_interval + backoff.pause(), false)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
                () = wake.notified(), if wakeable => delays = POLL_DELAYS.iter(),
            }
        }
    }

    /// Polls if this replica leads; returns `None` if another replica does.
    async fn poll_as_leader<T: LeaderTask>(
        &self,
        task: &mut T,
        leading: &mut Option<AsyncPgConnection>,
    ) -> Result<Option<PollOutcome>, T::Error> {
        if leading.is_none() {
            *leading = self.try_lead(T::LOCK).await?;
        }
        match leading {
            Some(conn) => Ok(Some(task.poll(conn).await?)),
            None => Ok(None),
        }
    }
}
