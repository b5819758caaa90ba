//! Works off the replays that operators asked for, each at its own rate, and takes the letters of
//! what was replayed out of the dead-letter queues.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncConnection;
use platform::{chain, database::DatabaseError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::dead_letters;
use crate::engine::Engine;
use crate::ledger;

/// Replays state their rate by the second.
const BEAT: Duration = Duration::from_secs(1);
/// Reading the dead-letter queues takes longer than a beat: while a replay goes on, they are tidied up
/// no more often than this.
const TIDY_MEANWHILE: Duration = Duration::from_secs(60);
/// Leftovers of a process that died between replaying and tidying up are found by then.
const TIDY_EVERY: Duration = Duration::from_secs(3600);

pub(crate) struct Replayer {
    engine: Arc<Engine>,
}

impl Replayer {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    pub(crate) async fn run(self, stop: CancellationToken) {
        let (mut tidied_at, mut untidy) = (Instant::now(), false);
        loop {
            let replayed = tokio::select! {
                () = stop.cancelled() => return,
                () = self.engine.replayed.notified() => true,
                () = tokio::time::sleep(BEAT) => false,
            };
            let advanced = self.step().await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "replays wait");
                false
            });
            untidy |= replayed || advanced;
            if is_time_to_tidy(untidy, advanced, tidied_at.elapsed()) {
                (tidied_at, untidy) = (Instant::now(), false);
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.tidy() => {}
                }
            }
        }
    }

    /// Gives every unfinished replay its next second's worth. Returns whether there was any. One
    /// that fails is left for later and holds up no other.
    async fn step(&self) -> Result<bool, DatabaseError> {
        let mut conn = self.engine.pool.get().await?;
        let (mut last, mut any) = (Uuid::nil(), false);
        loop {
            let now = self.engine.clock.now();
            let Some(id) = ledger::next_replay(&mut conn, now, last).await? else { return Ok(any) };
            last = id;
            match conn.transaction(async |conn| ledger::advance(conn, now, id).await).await {
                Ok(advanced) => any |= advanced,
                Err(error) => {
                    tracing::error!(replay.id = %id, error = chain(&error), "replay {id} waits");
                }
            }
            self.engine.wake.notify_one();
        }
    }

    async fn tidy(&self) {
        for kind in &self.engine.kinds {
            match dead_letters::tidy(&self.engine, *kind).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(%kind, removed, "removed {removed} dead letters"),
                Err(error) => {
                    tracing::warn!(%kind, error = chain(&error), "dead letters were not tidied up");
                }
            }
        }
    }
}

/// Whether to tidy up, after this long, when there may be leftovers and replays went on or not.
fn is_time_to_tidy(untidy: bool, advanced: bool, after: Duration) -> bool {
    let calm = !advanced || after > TIDY_MEANWHILE;
    (untidy && calm) || after > TIDY_EVERY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_that_goes_on_does_not_wait_for_tidying_up() {
        let second = Duration::from_secs(1);
        assert!(!is_time_to_tidy(true, true, second));
        assert!(is_time_to_tidy(true, true, Duration::from_secs(61)));
        assert!(is_time_to_tidy(true, false, second));
        assert!(!is_time_to_tidy(false, false, Duration::from_secs(61)));
        assert!(is_time_to_tidy(false, false, Duration::from_secs(3601)));
    }
}
