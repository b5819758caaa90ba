//! Advances the replays that operators requested, each at its own rate, and purges outdated dead
//! letters.
//!
//! See docs/decisions/dead-letters-and-replay.md.

use std::sync::Arc;
use std::time::Duration;

use platform::{chain, database::DatabaseError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::dead_letters;
use crate::engine::Engine;
use crate::store;

/// Replays state their rate per second.
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of looking for replays that another replica of the service left.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Reading the dead-letter queues takes longer than a step, so purges during a replay are rare.
const PURGE_INTERVAL_DURING_REPLAY: Duration = Duration::from_secs(60);
/// The regular purge finds dead letters of erased and of expired messages, and those that a process left
/// when it died after a replay.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);

pub(crate) struct Replayer {
    engine: Arc<Engine>,
}

impl Replayer {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut purged_at = Instant::now();
        let mut has_replayed = false;
        let mut advanced = false;
        loop {
            let pause = if advanced { STEP_INTERVAL } else { IDLE_INTERVAL };
            let notified = tokio::select! {
                () = stop.cancelled() => return,
                () = self.engine.replayed.notified() => true,
                () = tokio::time::sleep(pause) => false,
            };
            advanced = self.step().await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "advancing replays failed");
                false
            });
            has_replayed |= notified || advanced;
            if is_purge_due(has_replayed, advanced, purged_at.elapsed()) {
                (purged_at, has_replayed) = (Instant::now(), false);
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.purge_dead_letters() => {}
                }
            }
        }
    }

    /// Advances every unfinished replay by one second's worth, and returns whether any advanced. A
    /// replay that fails is tried again later and does not delay the others.
    async fn step(&self) -> Result<bool, DatabaseError> {
        let mut conn = self.engine.pool.get().await?;
        let mut last = Uuid::nil();
        let mut any = false;
        loop {
            let now = self.engine.clock.now();
            let Some(id) = store::next_due_replay(&mut conn, now, last).await? else {
                return Ok(any);
            };
            last = id;
            match conn.transaction(async |conn| store::advance_replay(conn, now, id).await).await {
                Ok(advanced) => any |= advanced,
                Err(error) => {
                    tracing::error!(replay.id = %id, error = chain(&error), "replay {id} failed");
                }
            }
            self.engine.wake.notify_one();
        }
    }

    async fn purge_dead_letters(&self) {
        for kind in &self.engine.kinds {
            match dead_letters::purge_outdated(&self.engine, *kind).await {
                Ok(0) => {}
                Ok(purged) => tracing::info!(%kind, purged, "purged the dead letters of {kind}"),
                Err(error) => {
                    tracing::warn!(%kind, error = chain(&error), "purging dead letters failed");
                }
            }
        }
    }
}

fn is_purge_due(has_replayed: bool, is_replaying: bool, since_last: Duration) -> bool {
    let may_purge = !is_replaying || since_last > PURGE_INTERVAL_DURING_REPLAY;
    (has_replayed && may_purge) || since_last > PURGE_INTERVAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_replay_rarely_waits_for_a_purge() {
        let second = Duration::from_secs(1);
        assert!(!is_purge_due(true, true, second));
        assert!(is_purge_due(true, true, Duration::from_secs(61)));
        assert!(is_purge_due(true, false, second));
        assert!(!is_purge_due(false, false, Duration::from_secs(61)));
        assert!(is_purge_due(false, false, Duration::from_secs(3601)));
    }
}
