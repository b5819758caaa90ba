//! Removes the events of erased shoppers from dead-letter queues.
//!
//! An event that no consumer could handle has the data that it had when it was published. Its kept copy at the
//! source is erased, and can be published again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::event::Event;
use platform::database::DatabaseError;
use platform::{Process, chain};

use crate::broker::Broker;
use crate::dead_letters::{OutdatedLetters, purge_dead_letters};
use crate::envelope::Envelope;
use crate::subscription::Incoming;

const INTERVAL: Duration = Duration::from_secs(3600);
/// Events that are in memory at the same time.
const MAX_HELD: u16 = 50;

/// Tells which events are about erased shoppers.
pub trait ErasedEvents: Send + Sync + 'static {
    type Event: Event + Send + Sync;

    /// For each event, whether its shopper was erased after it.
    fn are_erased(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[Envelope<Self::Event>],
    ) -> impl Future<Output = Result<Vec<bool>, DatabaseError>> + Send;
}

/// Removes dead-lettered events of erased shoppers every hour.
pub fn remove_erased_events<E: ErasedEvents>(
    broker: &Broker,
    service: &'static str,
    process: &Process,
    erased: E,
) {
    let queue = broker.topology.subscription_queue(service, E::Event::TYPE);
    let removal = Arc::new(Removal {
        queue: format!("{queue}.dead"),
        broker: broker.clone(),
        pool: process.pool.clone(),
        erased,
    });
    process.tasks.spawn_interval("dead-lettered events", INTERVAL, move || {
        let removal = Arc::clone(&removal);
        async move {
            let queue = &removal.queue;
            match purge_dead_letters(&removal.broker, queue, MAX_HELD, &*removal).await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(queue, removed, "removed events of erased shoppers"),
                Err(error) => {
                    tracing::warn!(queue, error = chain(&error), "dead letters were not searched");
                }
            }
        }
    });
}

struct Removal<E> {
    queue: String,
    broker: Broker,
    pool: platform::database::Pool,
    erased: E,
}

impl<E: ErasedEvents> OutdatedLetters for Removal<E> {
    /// Events that cannot be read stay for people to look at.
    async fn outdated(&self, letters: &[Incoming]) -> Result<HashSet<u64>, DatabaseError> {
        let mut tags = Vec::new();
        let mut events = Vec::new();
        for Incoming { delivery_tag, body, .. } in letters {
            if let Ok(event) = serde_json::from_slice::<Envelope<E::Event>>(body) {
                tags.push(*delivery_tag);
                events.push(event);
            }
        }
        let mut conn = self.pool.get().await?;
        let erased = self.erased.are_erased(&mut conn, &events).await?;
        let erased = tags.into_iter().zip(erased).filter(|(_, is_erased)| *is_erased);
        Ok(erased.map(|(tag, _)| tag).collect())
    }
}
