//! Removes dead letters from a queue of any length.
//!
//! The dead letters that stay are held unacknowledged. When no more may be in memory, they move to the end of the
//! queue: they are published again, and acknowledged after the confirms. The purge ends at the first dead letter that
//! it moved itself. The dead letters that it holds then return to the queue, so those of a short queue never move.
//! A purge that takes too long ends early, and the next one starts with the dead letters that it did not reach.
//!
//! A process that dies before the acknowledgements leaves a second copy of a dead letter. Each copy is judged on its
//! own. A second copy takes no effect: replays read the database, and the inbox ignores a second event.

use std::collections::HashSet;
use std::mem::take;
use std::time::Duration;

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, LongString},
};
use platform::database::DatabaseError;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::{
    broker::Broker,
    connection::BrokerError,
    publisher::{Outgoing, Publisher},
    subscription::{Incoming, Subscription, incoming},
    topology::short,
};

/// Other work waits for a purge, and new dead letters may arrive faster than it ends.
const MAX_DURATION: Duration = Duration::from_secs(60);
/// A queue that delivers nothing for this long is read to its end.
const END_OF_QUEUE_TIMEOUT: Duration = Duration::from_secs(1);
/// The header of a moved dead letter with the id of the last purge that moved it. Other properties do not
/// distinguish it from a copy that the purge has not read yet.
const PURGE_ID: &str = "purge-id";
/// Headers in which the broker counts how often it delivered a message. The moved copy has its own counts.
const DELIVERY_COUNTS: [&str; 2] = ["x-delivery-count", "x-acquired-count"];

/// Tells which dead letters have to be removed.
pub trait OutdatedLetters: Sync {
    /// The delivery tags of those dead letters that have to be removed.
    fn outdated(
        &self,
        letters: &[Incoming],
    ) -> impl Future<Output = Result<HashSet<u64>, DatabaseError>> + Send;
}

/// Failure of a purge. Dead letters that were not removed are still in the queue.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    #[error("database")]
    Database(#[from] DatabaseError),
    #[error("dead-letter queue")]
    Broker(#[from] BrokerError),
    #[error("dead-letter queue {0} rejects messages")]
    Rejected(String),
}

/// Removes the outdated dead letters of a queue and returns their number. At most `max_held` dead letters are in
/// memory.
pub async fn purge_dead_letters(
    broker: &Broker,
    queue: &str,
    max_held: u16,
    letters: &impl OutdatedLetters,
) -> Result<usize, PurgeError> {
    // RabbitMQ takes zero for "unlimited".
    let max_held = max_held.max(1);
    let mut purge = Purge {
        id: AMQPValue::LongString(LongString::from(Uuid::new_v4().to_string().as_str())),
        queue,
        subscription: Subscription::open(&broker.consuming, queue, max_held).await?,
        publisher: Publisher::new(broker.publishing.clone()),
        held: Vec::new(),
        removed: 0,
    };
    let started_at = Instant::now();
    while purge.read(max_held.into(), letters).await? {
        if started_at.elapsed() > MAX_DURATION {
            tracing::warn!(queue, "the purge of {queue} took too long, the next one continues");
            break;
        }
    }
    Ok(purge.removed)
}

struct Purge<'a> {
    id: AMQPValue,
    queue: &'a str,
    subscription: Subscription,
    publisher: Publisher,
    /// The unacknowledged dead letters that stay.
    held: Vec<HeldLetter>,
    removed: usize,
}

struct HeldLetter {
    delivery_tag: u64,
    properties: BasicProperties,
    body: Vec<u8>,
}

impl Purge<'_> {
    /// Reads the dead letters that have arrived. Returns false at the end of the queue.
    async fn read(
        &mut self,
        max_held: usize,
        letters: &impl OutdatedLetters,
    ) -> Result<bool, PurgeError> {
        let next = self.subscription.next_as(max_held, with_properties);
        let Ok(batch) = timeout(END_OF_QUEUE_TIMEOUT, next).await else { return Ok(false) };
        let batch = batch?;
        let arrived = batch.len();
        let (properties, unread): (Vec<_>, Vec<_>) =
            batch.into_iter().take_while(|(properties, _)| !self.has_moved(properties)).unzip();
        let is_end = unread.len() < arrived;
        let outdated = letters.outdated(&unread).await?;
        for (properties, letter) in properties.into_iter().zip(unread) {
            let Incoming { delivery_tag, body, .. } = letter;
            if outdated.contains(&delivery_tag) {
                self.subscription.ack(delivery_tag).await?;
                self.removed += 1;
            } else {
                self.held.push(HeldLetter { delivery_tag, properties, body });
            }
        }
        if !is_end && self.held.len() >= max_held {
            self.move_to_end().await?;
        }
        Ok(!is_end)
    }

    fn has_moved(&self, properties: &BasicProperties) -> bool {
        let headers = properties.headers().as_ref();
        headers.and_then(|headers| headers.inner().get(PURGE_ID)) == Some(&self.id)
    }

    /// Moves the held dead letters to the end of the queue.
    async fn move_to_end(&mut self) -> Result<(), PurgeError> {
        let held = take(&mut self.held);
        let mut copies = Vec::with_capacity(held.len());
        for letter in &held {
            copies.push(Outgoing {
                exchange: "",
                routing_key: self.queue,
                properties: self.marked(letter.properties.clone()),
                body: &letter.body,
            });
        }
        let outcomes = self.publisher.publish_outgoing(copies).await?;
        let mut is_rejected = false;
        for (letter, outcome) in held.iter().zip(outcomes) {
            if outcome.is_ok() {
                self.subscription.ack(letter.delivery_tag).await?;
            } else {
                is_rejected = true;
            }
        }
        if is_rejected { Err(PurgeError::Rejected(self.queue.to_owned())) } else { Ok(()) }
    }

    /// The properties of a copy that this purge moves.
    fn marked(&self, properties: BasicProperties) -> BasicProperties {
        let headers = properties.headers().as_ref();
        let mut headers = headers.map(|headers| headers.inner().clone()).unwrap_or_default();
        headers.retain(|name, _| !DELIVERY_COUNTS.contains(&name.as_str()));
        headers.insert(short(PURGE_ID), self.id.clone());
        properties.with_headers(FieldTable::from(headers))
    }
}

fn with_properties(delivery: lapin::message::Delivery) -> (BasicProperties, Incoming) {
    (delivery.properties.clone(), incoming(delivery))
}
