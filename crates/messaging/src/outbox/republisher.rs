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
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct Republisher {
    exchange: Exchange,
    batch_size: usize,
    per_second: u32,
    next_step_at: Instant,
}

impl Republisher {
    pub(super) fn new(exchange: Exchange, settings: &Settings) -> Self {
        let per_second = settings.republish_per_second.get();
        // A batch must not exceed the rate.
        let most = usize::try_from(per_second).unwrap_or(usize::MAX);
        let batch_size = settings.relay_batch_size.get().min(most);
        Self { exchange, batch_size, per_second, next_step_at: Instant::now() }
    }

    /// Publishes one batch if it is due. Returns whether the next one is due at once.
    pub(super) async fn step(
        &mut self,
        conn: &mut AsyncPgConnection,
        publisher: &Publisher,
    ) -> Result<bool, RelayError> {
        let started_at = Instant::now();
        if started_at < self.next_step_at {
            return Ok(false);
        }
        let Some(running) = republishes::running(conn).await? else {
            self.next_step_at = started_at + IDLE_INTERVAL;
            return Ok(false);
        };
        let limit = self.batch_size.try_into().unwrap_or(i64::MAX);
        let events = read_after(conn, running.position(), running.until, limit).await?;
        let Some(last) = events.last() else {
            republishes::finish(conn, running.id).await?;
            let (id, done) = (running.id, running.done);
            tracing::info!(republish.id = %id, done, "{done} events were published again");
            return Ok(false);
        };
        let selected: Vec<_> =
            events.iter().filter(|event| running.selects(&event.row.routing_key)).collect();
        self.publish(publisher, &selected).await?;
        let position = (last.published_at, last.row.sequence);
        republishes::advance(conn, running.id, position, selected.len()).await?;
        self.next_step_at = started_at + self.duration_of(selected.len());
        Ok(selected.is_empty())
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
