//! Works off the replays that operators asked for, each at its own rate, and takes the letters of
//! what was replayed out of the dead-letter queues.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncConnection;
use platform::{chain, database::DatabaseError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::Engine;
use crate::ledger;
use crate::letters;

/// Replays state their rate by the second.
const BEAT: Duration = Duration::from_secs(1);
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
        let mut tidied_at = Instant::now();
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
            if replayed || advanced || tidied_at.elapsed() > TIDY_EVERY {
                tidied_at = Instant::now();
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
            match letters::tidy(&self.engine, *kind).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(%kind, removed, "removed {removed} dead letters"),
                Err(error) => {
                    tracing::warn!(%kind, error = chain(&error), "dead letters were not tidied up");
                }
            }
        }
    }
}
