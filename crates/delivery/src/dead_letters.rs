//! Dead letters: a message that was given up, where an operator finds and understands it.
//!
//! The letter is in the broker before the ledger says that the message is dead. A letter whose
//! message was replayed or delivered since is a leftover and is taken away.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::SecondsFormat;
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Integer, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::delivery::DeliveryDead;
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use messaging::{BrokerError, Incoming, Message, Publisher, Subscription};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
};
use uuid::Uuid;

use crate::attempt::Message as Content;
use crate::engine::{Engine, default_exchange, header};
use crate::ledger::Settlement;

/// As many letters as one place at a queue can hold. Few, because they come with their bodies.
const AT_ONCE: u16 = 200;
/// So many places are enough for any dead-letter queue that somebody still looks at.
const PLACES: usize = 500;
/// A dead-letter queue that brings nothing for so long has no more.
const QUIET: Duration = Duration::from_millis(500);

/// Why letters could not be written or taken away.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LetterError {
    #[error("ledger")]
    Database(#[from] DatabaseError),
    #[error("dead-letter queue")]
    BrokerConnection(#[from] BrokerError),
}

impl From<diesel::result::Error> for LetterError {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

/// What became of letters, by message and round.
#[derive(Default)]
pub(crate) struct DeadLetters {
    /// They are in the broker; what to announce of each.
    pub(crate) written: HashMap<(Uuid, i32), DeliveryDead>,
    pub(crate) not_taken: HashSet<(Uuid, i32)>,
}

/// Publishes the letters of messages that are about to be dead.
pub(crate) async fn write(
    engine: &Engine,
    publisher: &Publisher,
    conn: &mut AsyncPgConnection,
    dead: &[(&Settlement, &Content)],
) -> Result<DeadLetters, LetterError> {
    let begun = first_attempts(conn, dead.iter().map(|(settlement, _)| settlement.id)).await?;
    let mut notices = Vec::with_capacity(dead.len());
    let mut letters = Vec::with_capacity(dead.len());
    for (settlement, content) in dead {
        let Some(notice) = notice(engine, settlement, content, &begun) else { continue };
        letters.push(letter(engine, &notice, content, settlement.round));
        notices.push(((settlement.id, settlement.round), notice));
    }
    let words = publisher.publish(&letters).await?;
    let mut became = DeadLetters::default();
    for ((of, notice), word) in notices.into_iter().zip(words) {
        if word.is_ok() {
            became.written.insert(of, notice);
        } else {
            became.not_taken.insert(of);
        }
    }
    Ok(became)
}

fn notice(
    engine: &Engine,
    settlement: &Settlement,
    content: &Content,
    begun: &HashMap<Uuid, Timestamp>,
) -> Option<DeliveryDead> {
    let [first, ..] = settlement.tries.as_slice() else { return None };
    let last = settlement.tries.last()?;
    let id: MerchantId = settlement.merchant.parse().ok()?;
    let merchant = engine.merchants.get(&id);
    Some(DeliveryDead {
        delivery: settlement.id,
        merchant: id,
        kind: settlement.kind,
        event: content.event.clone(),
        queue: engine.broker.topology.qualified(settlement.kind.dead_letter_queue()),
        attempts: settlement.number.try_into().unwrap_or_default(),
        status: last.status,
        outcome: last.outcome.to_owned(),
        detail: last.detail.clone(),
        first_attempt_at: begun.get(&settlement.id).copied().unwrap_or(first.at),
        last_attempt_at: last.at,
        support_contact: merchant.and_then(|merchant| merchant.settings.support_contact.clone()),
    })
}

fn letter(engine: &Engine, notice: &DeliveryDead, content: &Content, round: i32) -> Message {
    let time = |at: Timestamp| at.to_rfc3339_opts(SecondsFormat::Millis, true);
    let interface = Interface::Message(notice.kind);
    let endpoint = engine.endpoints.find(&content.merchant, interface, notice.last_attempt_at);
    let mut headers = vec![
        (header::DELIVERY, notice.delivery.to_string()),
        (header::MERCHANT, content.merchant.clone()),
        (header::EVENT, notice.event.clone()),
        (header::SEQUENCE, content.sequence.to_string()),
        (header::ROUND, round.to_string()),
        ("attempts", notice.attempts.to_string()),
        ("last-outcome", notice.outcome.clone()),
        ("last-error", notice.detail.clone()),
        ("first-attempt-at", time(notice.first_attempt_at)),
        ("last-attempt-at", time(notice.last_attempt_at)),
    ];
    headers.extend(notice.status.map(|status| ("last-status", status.to_string())));
    headers.extend(endpoint.ok().map(|opened| {
        // What follows the path may be a secret.
        let mut url = opened.endpoint.url().clone();
        url.set_query(None);
        ("endpoint", url.to_string())
    }));
    headers.extend(content.traceparent.clone().map(|parent| (header::TRACEPARENT, parent)));
    Message {
        exchange: default_exchange(),
        routing_key: notice.queue.clone(),
        id: notice.delivery.to_string(),
        content_type: "application/json",
        headers,
        body: content.body.to_vec(),
    }
}

#[derive(QueryableByName)]
struct Begun {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    delivery: Uuid,
    #[diesel(sql_type = Timestamptz)]
    at: Timestamp,
}

async fn first_attempts(
    conn: &mut AsyncPgConnection,
    ids: impl Iterator<Item = Uuid>,
) -> Result<HashMap<Uuid, Timestamp>, DatabaseError> {
    let begun: Vec<Begun> = prepared(
        sql_query(
            "SELECT delivery, min(started_at) AS at FROM delivery_attempts \
             WHERE delivery = ANY ($1) GROUP BY delivery",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids.collect::<Vec<_>>()),
    )
    .load(conn)
    .await?;
    Ok(begun.into_iter().map(|begun| (begun.delivery, begun.at)).collect())
}

/// Takes the letters of a kind away whose messages were replayed or delivered since, and returns
/// how many. The others go back to where they were when this lets go of the queue.
pub(crate) async fn tidy(engine: &Engine, kind: MessageKind) -> Result<usize, LetterError> {
    let queue = engine.broker.topology.qualified(kind.dead_letter_queue());
    let mut conn = engine.pool.get().await?;
    let (mut places, mut removed) = (Vec::new(), 0);
    while places.len() < PLACES {
        let mut place = Subscription::open(&engine.broker.consuming, &queue, AT_ONCE).await?;
        let letters = read_all(&mut place).await?;
        let past = superseded(&mut conn, letters.iter().filter_map(|(_, of)| *of)).await?;
        // What somebody else put here is left alone.
        let leftovers = letters.iter().filter(|(_, of)| of.is_some_and(|of| past.contains(&of)));
        let leftovers: Vec<_> = leftovers.map(|(tag, _)| *tag).collect();
        places.push((place, leftovers));
        if letters.len() < usize::from(AT_ONCE) {
            break;
        }
    }
    // Only now: a place with room is given more letters, which nobody would read.
    for (place, leftovers) in &places {
        for tag in leftovers {
            place.ack(*tag).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The tags of what a place holds, and the message and round each letter is about.
async fn read_all(
    place: &mut Subscription,
) -> Result<Vec<(u64, Option<(Uuid, i32)>)>, BrokerError> {
    let mut letters = Vec::new();
    while letters.len() < usize::from(AT_ONCE) {
        match tokio::time::timeout(QUIET, place.next(AT_ONCE.into())).await {
            Ok(batch) => letters.extend(batch?.iter().map(|one| (one.delivery_tag, about(one)))),
            Err(_nothing_more) => break,
        }
    }
    Ok(letters)
}

fn about(incoming: &Incoming) -> Option<(Uuid, i32)> {
    let find = |name| {
        let (_, value) = incoming.headers.iter().find(|(known, _)| known == name)?;
        Some(value.as_str())
    };
    Some((find(header::DELIVERY)?.parse().ok()?, find(header::ROUND)?.parse().ok()?))
}

#[derive(QueryableByName)]
struct Superseded {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
    #[diesel(sql_type = Integer)]
    round: i32,
}

/// Of these letters, as messages and rounds, the ones whose message went on after that round, or was
/// delivered in it after all.
async fn superseded(
    conn: &mut AsyncPgConnection,
    letters: impl Iterator<Item = (Uuid, i32)>,
) -> Result<HashSet<(Uuid, i32)>, DatabaseError> {
    let (ids, rounds): (Vec<_>, Vec<_>) = letters.unzip();
    let past: Vec<Superseded> = prepared(
        sql_query(
            "SELECT given.id, given.round FROM unnest($1, $2) AS given (id, round) \
             WHERE EXISTS (SELECT FROM deliveries AS row \
                           WHERE row.id = given.id AND row.round > given.round) \
             OR EXISTS (SELECT FROM delivery_attempts AS attempt \
                        WHERE attempt.delivery = given.id AND (attempt.round > given.round \
                        OR attempt.round = given.round AND attempt.settled = 'delivered'))",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
        .bind::<Array<Integer>, _>(rounds),
    )
    .load(conn)
    .await?;
    Ok(past.into_iter().map(|past| (past.id, past.round)).collect())
}
