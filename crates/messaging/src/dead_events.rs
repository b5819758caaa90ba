//! Removes the events of erased shoppers from dead-letter queues.
//!
//! An event that no consumer could handle has the data that it had when it was published. Its kept copy at the
//! source is erased, and can be published again.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::event::Event;
use platform::database::DatabaseError;
use platform::{Process, chain};
use tokio::time::Instant;

use crate::broker::Broker;
use crate::connection::BrokerError;
use crate::envelope::Envelope;
use crate::subscription::Subscription;

const INTERVAL: Duration = Duration::from_secs(3600);
/// Dead letters that one search reads. They return to the queue when it ends.
const MAX_SEARCHED: u16 = u16::MAX;
/// Events that are in memory at the same time.
const READ_BATCH: usize = 50;
/// New dead letters may arrive faster than a search ends.
const MAX_DURATION: Duration = Duration::from_secs(60);
/// A queue that delivers nothing for this long is read to its end.
const END_OF_QUEUE_TIMEOUT: Duration = Duration::from_millis(500);

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

#[derive(Debug, thiserror::Error)]
enum RemovalError {
    #[error("database")]
    Database(#[from] DatabaseError),
    #[error("dead-letter queue")]
    Broker(#[from] BrokerError),
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
            match removal.remove().await {
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

impl<E: ErasedEvents> Removal<E> {
    /// Returns the number of removed events. Events that cannot be read stay for people to look at.
    async fn remove(&self) -> Result<usize, RemovalError> {
        let mut subscription =
            Subscription::open(&self.broker.consuming, &self.queue, MAX_SEARCHED).await?;
        let (started_at, mut removed) = (Instant::now(), 0);
        while started_at.elapsed() < MAX_DURATION
            && let Ok(batch) =
                tokio::time::timeout(END_OF_QUEUE_TIMEOUT, subscription.next(READ_BATCH)).await
        {
            let (mut tags, mut events) = (Vec::new(), Vec::new());
            for incoming in batch? {
                if let Ok(event) = serde_json::from_slice::<Envelope<E::Event>>(&incoming.body) {
                    tags.push(incoming.delivery_tag);
                    events.push(event);
                }
            }
            let mut conn = self.pool.get().await?;
            let erased = self.erased.are_erased(&mut conn, &events).await?;
            for (tag, _) in tags.into_iter().zip(erased).filter(|(_, is_erased)| *is_erased) {
                subscription.ack(tag).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}
