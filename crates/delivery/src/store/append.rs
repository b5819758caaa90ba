//! Inserts messages in the transaction of the service that caused them.
//!
//! The transaction locks the counter row of each ordering key. Two transactions that write to one
//! key therefore run one after the other, and a message is never visible before its predecessors.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    access::MerchantId,
    message_kind::{MessageKind, MessageVersion},
};
use messaging::SEQUENCE_FLOOR;
use platform::{
    Timestamp,
    database::{DatabaseError, column, prepared, sql},
    telemetry,
};
use uuid::Uuid;

use super::new_id;

#[derive(Clone, Debug)]
pub struct NewMessage {
    pub merchant: MerchantId,
    pub kind: MessageKind,
    /// The version of the body, from [`MessageWriter::message_version`](crate::MessageWriter::message_version).
    pub version: MessageVersion,
    /// Messages with the same key arrive in order, for example `rma:<id>`.
    pub ordering_key: Option<String>,
    /// For example `rma.created`.
    pub event: String,
    /// Sent byte for byte.
    pub body: Bytes,
}

/// A message with its id.
#[derive(Debug)]
pub struct NewDelivery {
    /// From [`Deliveries::new_ids`](crate::Deliveries::new_ids).
    pub id: Uuid,
    /// The trace of the request that caused the message.
    pub traceparent: Option<String>,
    pub message: NewMessage,
}

/// Inserts messages. All messages but the first of an ordering key wait here for the counter. After a restore
/// from a backup the counters continue above the numbers that merchants may have seen, also for ordering keys
/// that the backup does not have. `(SELECT $1)` hides the length of the arrays from the planner, which keeps the
/// plan.
static INSERT_MESSAGES: LazyLock<String> =
    LazyLock::new(|| format!(include_str!("insert_messages.sql"), sequence_floor = SEQUENCE_FLOOR));

/// A query in SQL that locks the counter of an ordering key, for a batch that appends to the key later. It finds
/// nothing if another transaction, for example a replay, has locked the counter: a batch must not wait for it.
pub fn lock_free_counter(merchant: &str, ordering_key: &str) -> String {
    format!(
        "SELECT true AS is_free FROM delivery_ordering_keys AS counter \
         WHERE counter.merchant = {merchant} AND counter.ordering_key = {ordering_key} \
         FOR UPDATE SKIP LOCKED"
    )
}

platform::rows! { struct Counters { are_free: bool } }

/// Locks the counters of ordering keys, for a batch that appends to the keys later. Returns false if another
/// transaction, for example a replay, has locked one of them. A key without a message has no counter. The connection
/// is shared, so that the caller can send the statement together with others.
pub(crate) async fn lock_free_counters(
    mut conn: &AsyncPgConnection,
    ordering_keys: &[(&str, String)],
) -> Result<bool, DatabaseError> {
    let query = sql(
        FREE_COUNTERS.as_str(),
        (
            column(ordering_keys, |(merchant, _)| *merchant),
            column(ordering_keys, |(_, key)| key.as_str()),
        ),
    );
    let counters: Counters = prepared(query).get_result(&mut conn).await?;
    Ok(counters.are_free)
}

/// See [`INSERT_MESSAGES`] for `(SELECT $1)`. `OFFSET 0` keeps PostgreSQL from turning the lookups into a join.
static FREE_COUNTERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT coalesce(bool_and(free.is_free IS TRUE), true) AS are_free \
         FROM unnest((SELECT $1), $2) AS wanted (merchant, ordering_key), LATERAL ( \
             SELECT FROM delivery_ordering_keys AS own \
             WHERE own.merchant = wanted.merchant AND own.ordering_key = wanted.ordering_key OFFSET 0 \
         ) AS stored LEFT JOIN LATERAL ({}) AS free ON true",
        lock_free_counter("wanted.merchant", "wanted.ordering_key")
    )
});

/// Creates ids for the messages of one batch, in the order given. Ids of one millisecond are in no order, so they are
/// sorted: replays go by id, and the messages of a batch by their sequence. The ids of two transactions need not follow
/// the sequence of an ordering key, because each has its time from before it locked the counter, and the clocks of
/// replicas differ. Messages of a key that are pending together are still sent by sequence.
pub(crate) fn new_ids(now: Timestamp, number: usize) -> Vec<Uuid> {
    let mut ids: Vec<_> = (0..number).map(|_| new_id(now)).collect();
    ids.sort_unstable();
    ids
}

/// Inserts messages and returns their ids, in the order given.
pub(crate) async fn append(
    conn: &AsyncPgConnection,
    now: Timestamp,
    messages: &[NewMessage],
) -> Result<Vec<Uuid>, DatabaseError> {
    let ids = new_ids(now, messages.len());
    let traceparent = telemetry::traceparent();
    let new: Vec<_> = ids
        .iter()
        .zip(messages)
        .map(|(id, message)| NewDelivery {
            id: *id,
            traceparent: traceparent.clone(),
            message: message.clone(),
        })
        .collect();
    append_new(conn, now, &new).await?;
    Ok(ids)
}

/// Inserts messages with one statement. The connection is shared, so that the caller can send the statement
/// together with others.
pub(crate) async fn append_new(
    mut conn: &AsyncPgConnection,
    now: Timestamp,
    new: &[NewDelivery],
) -> Result<(), DatabaseError> {
    if new.is_empty() {
        return Ok(());
    }
    let (added, later) = count_by_ordering_key(new);
    let (merchants, keys): (Vec<_>, Vec<_>) = added.keys().copied().unzip();
    let text = |text: fn(&NewMessage) -> &str| column(new, |new| text(&new.message));
    let statement = sql(
        INSERT_MESSAGES.as_str(),
        (
            column(new, |new| new.id),
            text(|message| message.merchant.as_str()),
            text(|message| message.kind.name()),
            column(new, |new| new.message.ordering_key.as_deref()),
            later,
            text(|message| &message.event),
            column(new, |new| new.message.body.as_ref()),
            column(new, |new| new.traceparent.as_deref()),
            now,
            merchants,
            keys,
            added.values().copied().collect::<Vec<_>>(),
            column(new, |new| i32::from(new.message.version.0)),
        ),
    );
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// The number of messages of each ordering key, and for each message the number of later ones of its ordering
/// key. The keys are sorted by bytes: two transactions with the same keys lock them in the same order.
fn count_by_ordering_key(new: &[NewDelivery]) -> (BTreeMap<(&str, &str), i64>, Vec<i64>) {
    let mut added = BTreeMap::<(&str, &str), i64>::new();
    let mut later: Vec<_> = new
        .iter()
        .rev()
        .map(|NewDelivery { message, .. }| {
            let Some(ordering_key) = &message.ordering_key else { return 0 };
            let number = added.entry((message.merchant.as_str(), ordering_key)).or_default();
            *number += 1;
            *number - 1
        })
        .collect();
    later.reverse();
    (added, later)
}
