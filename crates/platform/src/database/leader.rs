//! Tasks that one replica of a service runs at a time: the one that holds an advisory lock.
//!
//! Most work is announced: it wakes the leader, or the replica that causes it notifies the leader through the database.
//! Polls find the rest.

use std::{sync::Arc, time::Duration};

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{DatabaseError, Pool};
use crate::{chain, retry::Backoff};

/// Shortest pause after a poll that found nothing more, so that many wake-ups in a row share a poll.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// A leader that finds no work for a while polls more rarely: its interval grows up to this many times.
const MAX_SLOWDOWN: u32 = 10;
/// Shortest interval of notifications from a replica. In each transaction, they would cost most of the throughput.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(50);

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
    /// Work waits for something that may not be announced. The next poll follows after this time at the latest.
    Waiting(Duration),
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
    /// get it every `poll_interval`, and passes its wake-ups on to the leader.
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
                Ok(Some(PollOutcome::Waiting(pause))) => {
                    tokio::time::sleep(MIN_PAUSE).await;
                    (pause, true)
                }
                Ok(Some(PollOutcome::Busy)) => (Duration::ZERO, false),
                Ok(Some(PollOutcome::Saturated(pause))) => (pause, false),
                Ok(Some(PollOutcome::Later(pause))) => (pause, true),
                // Another replica leads.
                Ok(None) => {
                    tokio::time::sleep(MIN_NOTIFY_INTERVAL).await;
                    (poll_interval, true)
                }
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
                () = notified(&mut leading), if wakeable => active_at = Instant::now(),
                () = wake.notified(), if wakeable => {
                    active_at = Instant::now();
                    if leading.is_none() {
                        self.notify_leader(T::LOCK).await;
                    }
                }
            }
        }
    }

    async fn notify_leader(&self, lock: i64) {
        let notifying = async {
            let mut conn = self.get().await?;
            conn.batch_execute(&format!("NOTIFY {}", channel(lock))).await?;
            Ok::<_, DatabaseError>(())
        };
        if let Err(error) = notifying.await {
            tracing::debug!(error = chain(&error), "the leader is not notified; it polls later");
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
                // The first poll finds all that was not announced before.
                let listen = format!("LISTEN {}", channel(T::LOCK));
                conn.batch_execute(&listen).await.map_err(DatabaseError::from)?;
                task.begin(conn).await?;
            }
        }
        match leading {
            Some(conn) => Ok(Some(task.poll(conn).await?)),
            None => Ok(None),
        }
    }
}

/// The channel on which the leader of a task is notified.
fn channel(lock: i64) -> String {
    format!("leader_{lock:x}")
}

/// Waits until another replica notifies this leader. Cancel-safe.
async fn notified(leading: &mut Option<AsyncPgConnection>) {
    let Some(conn) = leading else { return std::future::pending().await };
    let mut notifications = std::pin::pin!(conn.notifications_stream());
    if notifications.next().await.is_none() {
        // The connection has ended, which the next poll notices.
        std::future::pending().await
    }
    // One poll follows, however many notifications have arrived.
    while notifications.next().now_or_never().flatten().is_some() {}
}
