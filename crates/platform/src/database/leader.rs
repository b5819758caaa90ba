//! Tasks that one replica of a service runs at a time: the one that holds an advisory lock.

use std::{sync::Arc, time::Duration};

use diesel_async::AsyncPgConnection;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{DatabaseError, Pool};
use crate::{chain, retry::Backoff};

/// Shortest pause after a poll that found nothing more, so that many wake-ups in a row share a poll.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// A leader that finds no work for a while polls more rarely: its interval grows up to this many times.
const MAX_SLOWDOWN: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollOutcome {
    /// The poll found work, and there may be more. The next poll follows at once.
    Busy,
    /// The poll found work, and nothing is left.
    Complete,
    /// The poll found a full batch. The next poll follows after this time, and wake-ups are ignored until
    /// then, so that the next batch is large too.
    Saturated(Duration),
    /// More work is due after this time.
    Later(Duration),
    Idle,
}

/// A task that only the leader runs.
pub trait LeaderTask {
    /// Key of the advisory lock that the leader holds, unique within a database. The keys of this project are
    /// the bytes of an ASCII name, for example `i64::from_be_bytes(*b"delivery")`.
    const LOCK: i64;
    /// Log message for a failed poll.
    const FAILURE_MESSAGE: &'static str;
    type Error: std::error::Error + From<DatabaseError> + Send + 'static;

    /// Runs when this replica has become the leader, on each new connection: after a fail-over the database may be
    /// another one.
    fn begin(
        &mut self,
        _conn: &mut AsyncPgConnection,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// Does the work that is due. `conn` holds the leader's lock.
    fn poll(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> impl Future<Output = Result<PollOutcome, Self::Error>> + Send;
}

impl Pool {
    /// Polls while this replica holds the lock, when woken and every `poll_interval`. If the last work or
    /// wake-up was long ago, the pause is a tenth of the time since then. A replica without the lock tries to
    /// get it every `poll_interval`.
    pub async fn run_as_leader<T: LeaderTask>(
        self,
        mut task: T,
        wake: Arc<Notify>,
        poll_interval: Duration,
        stop: CancellationToken,
    ) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        let mut leading = None;
        let mut active_at = Instant::now();
        while !stop.is_cancelled() {
            let polled = self.poll_as_leader(&mut task, &mut leading).await;
            if polled.is_ok() {
                backoff.reset();
            }
            if !matches!(polled, Ok(Some(PollOutcome::Idle))) {
                active_at = Instant::now();
            }
            let (pause, wakeable) = match polled {
                Ok(Some(PollOutcome::Idle | PollOutcome::Complete)) => {
                    tokio::time::sleep(MIN_PAUSE).await;
                    let longest = poll_interval * MAX_SLOWDOWN;
                    ((active_at.elapsed() / 10).clamp(poll_interval, longest), true)
                }
                Ok(Some(PollOutcome::Busy)) => (Duration::ZERO, false),
                Ok(Some(PollOutcome::Saturated(pause))) => (pause, false),
                Ok(Some(PollOutcome::Later(pause))) => (pause, true),
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
                () = wake.notified(), if wakeable => active_at = Instant::now(),
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
            if let Some(conn) = leading {
                task.begin(conn).await?;
            }
        }
        match leading {
            Some(conn) => Ok(Some(task.poll(conn).await?)),
            None => Ok(None),
        }
    }
}
