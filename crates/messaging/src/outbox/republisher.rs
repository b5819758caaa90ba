//! Publishes kept events again, for the request that is running.
//!
//! Progress is stored after the broker's confirmation, so a relay that dies continues where the last
//! batch ended and may repeat that batch.

use std::time::{Duration, Instant};

use diesel_async::AsyncPgConnection;

use super::{
    error::{RelayError, check_queued},
    published::{PublishedEvent, read_after},
};
use crate::{publisher::Publisher, republishes, settings::Settings, topology::Exchange};

/// Interval at which the relay looks for a request while none is running.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Larger batches delay other messages in the broker.
const MAX_BATCH: usize = 50;

pub(super) struct Republisher {
    exchange: Exchange,
    batch_size: usize,
    per_second: u32,
    next_step_at: Instant,
    is_running: bool,
}

impl Republisher {
    pub(super) fn new(exchange: Exchange, settings: &Settings) -> Self {
        let per_second = settings.republish_per_second.get();
        // A batch must not exceed the rate.
        let most = usize::try_from(per_second).unwrap_or(usize::MAX);
        let batch_size = settings.relay_batch_size.get().min(most).min(MAX_BATCH);
        Self { exchange, batch_size, per_second, next_step_at: Instant::now(), is_running: false }
    }

    /// Publishes one batch if it is due. Returns the time until the next batch, if a request is running.
    pub(super) async fn step(
        &mut self,
        conn: &mut AsyncPgConnection,
        publisher: &Publisher,
    ) -> Result<Option<Duration>, RelayError> {
        let started_at = Instant::now();
        if started_at < self.next_step_at {
            return Ok(self.is_running.then(|| self.next_step_at - started_at));
        }
        let running = republishes::running(conn).await?;
        self.is_running = running.is_some();
        let Some(running) = running else {
            self.next_step_at = started_at + IDLE_INTERVAL;
            return Ok(None);
        };
        let limit = self.batch_size.try_into().unwrap_or(i64::MAX);
        let events = read_after(conn, running.position(), running.until, limit).await?;
        let Some(last) = events.last() else {
            republishes::finish(conn, running.id).await?;
            let id = running.id;
            let done = running.done;
            tracing::info!(republish.id = %id, done, "{done} events were published again");
            return Ok(Some(Duration::ZERO));
        };
        let selected: Vec<_> =
            events.iter().filter(|event| running.selects(&event.row.routing_key)).collect();
        self.publish(publisher, &selected).await?;
        let position = (last.published_at, last.row.sequence);
        republishes::advance(conn, running.id, position, selected.len()).await?;
        self.next_step_at = started_at + self.duration_of(selected.len());
        Ok(Some(self.next_step_at.saturating_duration_since(Instant::now())))
    }

    async fn publish(
        &self,
        publisher: &Publisher,
        events: &[&PublishedEvent],
    ) -> Result<(), RelayError> {
        let messages: Vec<_> =
            events.iter().map(|event| event.row.message(&self.exchange)).collect();
        if messages.is_empty() {
            return Ok(());
        }
        check_queued(&publisher.publish(&messages).await?)
    }

    /// The time that a number of events takes at the maximum rate.
    fn duration_of(&self, events: usize) -> Duration {
        let events = u32::try_from(events).unwrap_or(u32::MAX);
        Duration::from_secs(1) / self.per_second * events
    }
}
