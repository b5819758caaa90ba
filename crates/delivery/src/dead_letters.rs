//! Dead letters: messages that were given up, in the queue `<queue>.dead`.
//!
//! A dead letter is in the broker before the database marks its delivery dead. It is purged once
//! the delivery is replayed or delivered after all, the message is erased, or its retention ended.
//!
//! See docs/decisions/dead-letters-and-replay.md.

use std::collections::{HashMap, HashSet};

use chrono::SecondsFormat;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::delivery::DeliveryDead;
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use messaging::{
    BrokerError, Incoming, Message, OutdatedLetters, Publisher, PurgeError, purge_dead_letters,
};
use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

use crate::endpoints::Endpoints;
use crate::engine::Engine;
use crate::queue_message::{QueueMessage, header};
use crate::settlement::Settlement;
use crate::store;
use crate::work_queues::default_exchange;

/// Dead letters that a purge has in memory. It moves none in a shorter queue.
const MAX_HELD: u16 = 200;

#[derive(Debug, thiserror::Error)]
pub(crate) enum DeadLetterError {
    #[error("database")]
    Database(#[from] DatabaseError),
    #[error("dead-letter queue")]
    Broker(#[from] BrokerError),
}

/// Identifies a dead letter: delivery id and replay number.
pub(crate) type LetterKey = (Uuid, i32);

/// Result of publishing dead letters.
#[derive(Default)]
pub(crate) struct DeadLetters {
    /// Published dead letters and the events that announce them.
    pub(crate) published: HashMap<LetterKey, DeliveryDead>,
    pub(crate) refused: HashSet<LetterKey>,
}

/// Publishes the dead letters of deliveries that are about to be marked dead.
pub(crate) async fn publish(
    engine: &Engine,
    publisher: &Publisher,
    conn: &mut AsyncPgConnection,
    dead: &[Settlement],
) -> Result<DeadLetters, DeadLetterError> {
    let ids: Vec<_> = dead.iter().map(Settlement::id).collect();
    let first_attempts = store::first_attempts(conn, &ids).await?;
    let mut events = Vec::new();
    let mut messages = Vec::new();
    for settlement in dead {
        let Some(event) = event(engine, settlement, &first_attempts) else { continue };
        messages.push(dead_letter(&engine.endpoints, &event, &settlement.message));
        events.push(((settlement.id(), settlement.message.replay_number), event));
    }
    let confirms = publisher.publish(&messages).await?;
    let mut letters = DeadLetters::default();
    for ((key, event), confirm) in events.into_iter().zip(confirms) {
        if confirm.is_ok() {
            letters.published.insert(key, event);
        } else {
            letters.refused.insert(key);
        }
    }
    Ok(letters)
}

fn event(
    engine: &Engine,
    settlement: &Settlement,
    first_attempts: &HashMap<Uuid, Timestamp>,
) -> Option<DeliveryDead> {
    let last = &settlement.attempt;
    let first = settlement.attempts().next().unwrap_or(last);
    let id: MerchantId = settlement.merchant().parse().ok()?;
    let merchant = engine.merchants.get(&id);
    Some(DeliveryDead {
        delivery: settlement.id(),
        merchant: id,
        kind: settlement.kind(),
        event: settlement.message.content.event.clone(),
        queue: engine.broker.topology.qualified(settlement.kind().dead_letter_queue()),
        attempts: settlement.message.attempt_number.unsigned_abs(),
        status: last.outcome.status(),
        outcome: last.outcome.name().to_owned(),
        detail: last.outcome.detail(),
        first_attempt_at: first_attempts.get(&settlement.id()).copied().unwrap_or(first.started_at),
        last_attempt_at: last.started_at,
        support_contact: merchant.and_then(|merchant| merchant.settings.support_contact.clone()),
    })
}

fn dead_letter(endpoints: &Endpoints, event: &DeliveryDead, message: &QueueMessage) -> Message {
    let content = &message.content;
    let time = |at: Timestamp| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let interface = Interface::Message(event.kind);
    let endpoint = endpoints.find(&content.merchant, interface, event.last_attempt_at);
    let mut headers = vec![
        (header::DELIVERY, event.delivery.to_string()),
        (header::MERCHANT, content.merchant.clone()),
        (header::EVENT, event.event.clone()),
        (header::VERSION, content.version.to_string()),
        (header::SEQUENCE, content.sequence.to_string()),
        (header::REPLAY_NUMBER, message.replay_number.to_string()),
        ("attempts", event.attempts.to_string()),
        ("last-outcome", event.outcome.clone()),
        ("last-error", event.detail.clone()),
        ("first-attempt-at", time(event.first_attempt_at)),
        ("last-attempt-at", time(event.last_attempt_at)),
    ];
    headers.extend(event.status.map(|status| ("last-status", status.to_string())));
    headers.extend(endpoint.ok().map(|resolved| {
        // The query string may hold a secret.
        let mut url = resolved.endpoint.url().clone();
        url.set_query(None);
        ("endpoint", url.to_string())
    }));
    headers.extend(content.traceparent.clone().map(|parent| (header::TRACEPARENT, parent)));
    Message {
        exchange: default_exchange(),
        routing_key: event.queue.clone(),
        id: event.delivery.to_string(),
        content_type: "application/json",
        headers,
        body: content.body.to_vec(),
    }
}

/// Purges the outdated dead letters of a kind and returns their number.
pub(crate) async fn purge_outdated(
    engine: &Engine,
    kind: MessageKind,
) -> Result<usize, PurgeError> {
    let queue = engine.broker.topology.qualified(kind.dead_letter_queue());
    let retention_days = engine.settings.retention_days;
    let mut conn = engine.pool.get().await?;
    let oldest_kept = store::oldest_kept(&mut conn, engine.clock.now(), retention_days).await?;
    drop(conn);
    let outdated = OutdatedDeliveries { engine, oldest_kept };
    purge_dead_letters(&engine.broker, &queue, MAX_HELD, &outdated).await
}

struct OutdatedDeliveries<'a> {
    engine: &'a Engine,
    /// The smallest id of the messages whose retention has not ended.
    oldest_kept: Uuid,
}

impl OutdatedLetters for OutdatedDeliveries<'_> {
    /// Messages without a delivery id come from other programs, and stay.
    async fn outdated(&self, letters: &[Incoming]) -> Result<HashSet<u64>, DatabaseError> {
        let mut keys: HashMap<u64, (Uuid, i32)> = HashMap::new();
        for letter in letters {
            keys.extend(delivery_of(letter).map(|key| (letter.delivery_tag, key)));
        }
        let mut conn = self.engine.pool.get().await?;
        let letters = keys.values().copied();
        let outdated = store::outdated_dead_letters(&mut conn, letters, self.oldest_kept).await?;
        let outdated = keys.into_iter().filter(|(_, key)| outdated.contains(key));
        Ok(outdated.map(|(tag, _)| tag).collect())
    }
}

/// Reads the delivery id and replay number of a dead letter.
fn delivery_of(incoming: &Incoming) -> Option<(Uuid, i32)> {
    let find = |name| {
        let (_, value) = incoming.headers.iter().find(|(known, _)| known == name)?;
        Some(value.as_str())
    };
    Some((find(header::DELIVERY)?.parse().ok()?, find(header::REPLAY_NUMBER)?.parse().ok()?))
}
