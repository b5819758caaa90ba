//! Inserts messages in the transaction of the service that caused them.
//!
//! The transaction locks the counter row of each ordering key. Two transactions that write to one
//! key therefore run one after the other, and a message is never visible before its predecessors.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use bytes::Bytes;
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Binary, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{access::MerchantId, message_kind::MessageKind};
use messaging::SEQUENCE_FLOOR;
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
    telemetry,
};
use uuid::Uuid;

use super::new_id;

/// A message to deliver.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub merchant: MerchantId,
    pub kind: MessageKind,
    /// Messages with the same key arrive in order, for example `rma:<id>`.
    pub ordering_key: Option<String>,
    /// For example `rma.created`.
    pub event: String,
    /// Sent byte for byte.
    pub body: Bytes,
}

const INSERT_MESSAGES: &str = "WITH new AS ( \
     SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7) \
     AS new (id, merchant, kind, ordering_key, sequence, event, body) \
 ), messages AS ( \
     INSERT INTO delivery_messages \
     SELECT id, merchant, kind, ordering_key, sequence, event, body, $8, $9 FROM new \
 ) \
 INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, next_attempt_at) \
 SELECT id, merchant, kind, ordering_key, sequence, 'ready', $9 FROM new";

/// Inserts one message. All messages but the first of an ordering key wait here for the counter.
static INSERT_MESSAGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH counter AS ( \
             INSERT INTO delivery_ordering_keys AS counter (merchant, ordering_key, last_sequence) \
             SELECT $2, $4, 1 + {SEQUENCE_FLOOR} WHERE $4 IS NOT NULL \
             {} RETURNING last_sequence \
         ), message AS ( \
             INSERT INTO delivery_messages VALUES ($1, $2, $3, $4, \
                 COALESCE((SELECT last_sequence FROM counter), 1), $5, $6, $7, $8) \
         ) \
         INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, next_attempt_at) \
         VALUES ($1, $2, $3, $4, COALESCE((SELECT last_sequence FROM counter), 1), 'ready', $8)",
        *ADVANCE_COUNTER
    )
});

/// Inserts one message with one statement. The connection is shared, so that the caller can send the
/// statement together with others.
pub(crate) async fn append_one(
    mut conn: &AsyncPgConnection,
    now: Timestamp,
    id: Uuid,
    message: &NewMessage,
) -> Result<(), DatabaseError> {
    let statement = sql_query(INSERT_MESSAGE.as_str())
        .bind::<diesel::sql_types::Uuid, _>(id)
        .bind::<Text, _>(message.merchant.as_str())
        .bind::<Text, _>(message.kind.name())
        .bind::<Nullable<Text>, _>(message.ordering_key.as_deref())
        .bind::<Text, _>(message.event.as_str())
        .bind::<Binary, _>(message.body.as_ref())
        .bind::<Nullable<Text>, _>(telemetry::traceparent())
        .bind::<Timestamptz, _>(now);
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// Inserts messages and returns their ids, in the order given.
pub(crate) async fn append(
    mut conn: &AsyncPgConnection,
    now: Timestamp,
    messages: &[NewMessage],
) -> Result<Vec<Uuid>, DatabaseError> {
    let mut ids: Vec<_> = messages.iter().map(|_| new_id(now)).collect();
    if ids.is_empty() {
        return Ok(ids);
    }
    if let ([id], [message]) = (ids.as_slice(), messages) {
        append_one(conn, now, *id, message).await?;
        return Ok(ids);
    }
    // Ids of one millisecond are in no order. Replays go by id, so ids must follow the sequence.
    ids.sort_unstable();
    let sequences = sequences(conn, messages).await?;
    let column = |text: fn(&NewMessage) -> &str| messages.iter().map(text).collect::<Vec<_>>();
    let ordering_keys: Vec<_> =
        messages.iter().map(|message| message.ordering_key.as_deref()).collect();
    let bodies: Vec<_> = messages.iter().map(|message| message.body.as_ref()).collect();
    prepared(
        sql_query(INSERT_MESSAGES)
            .bind::<Array<diesel::sql_types::Uuid>, _>(&ids)
            .bind::<Array<Text>, _>(column(|message| message.merchant.as_str()))
            .bind::<Array<Text>, _>(column(|message| message.kind.name()))
            .bind::<Array<Nullable<Text>>, _>(ordering_keys)
            .bind::<Array<BigInt>, _>(sequences)
            .bind::<Array<Text>, _>(column(|message| &message.event))
            .bind::<Array<Binary>, _>(bodies)
            .bind::<Nullable<Text>, _>(telemetry::traceparent())
            .bind::<Timestamptz, _>(now),
    )
    .execute(&mut conn)
    .await?;
    Ok(ids)
}

#[derive(QueryableByName)]
struct Counter {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    ordering_key: String,
    #[diesel(sql_type = BigInt)]
    last_sequence: i64,
}

/// Advances a known counter. After a restore from a backup the counters continue above the numbers that
/// merchants may have seen, also for ordering keys that the backup does not have.
static ADVANCE_COUNTER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "ON CONFLICT (merchant, ordering_key) DO UPDATE \
         SET last_sequence = excluded.last_sequence \
             + GREATEST(counter.last_sequence - {SEQUENCE_FLOOR}, 0)"
    )
});

static ADVANCE_COUNTERS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO delivery_ordering_keys AS counter (merchant, ordering_key, last_sequence) \
         SELECT merchant, ordering_key, added + {SEQUENCE_FLOOR} \
         FROM unnest($1, $2, $3) AS new (merchant, ordering_key, added) \
         {} RETURNING merchant, ordering_key, last_sequence",
        *ADVANCE_COUNTER
    )
});

/// Returns the sequence number of each message. A message without an ordering key has number 1.
async fn sequences(
    mut conn: &AsyncPgConnection,
    messages: &[NewMessage],
) -> Result<Vec<i64>, DatabaseError> {
    // Sorted by bytes: two transactions with the same ordering keys lock them in the same order.
    let mut added = BTreeMap::<(&str, &str), i64>::new();
    for message in messages {
        if let Some(ordering_key) = &message.ordering_key {
            *added.entry((message.merchant.as_str(), ordering_key)).or_default() += 1;
        }
    }
    if added.is_empty() {
        return Ok(vec![1; messages.len()]);
    }
    let (merchants, keys): (Vec<_>, Vec<_>) = added.keys().copied().unzip();
    let counters: Vec<Counter> = prepared(
        sql_query(ADVANCE_COUNTERS.as_str())
            .bind::<Array<Text>, _>(merchants)
            .bind::<Array<Text>, _>(keys)
            .bind::<Array<BigInt>, _>(added.values().copied().collect::<Vec<_>>()),
    )
    .load(&mut conn)
    .await?;
    let mut last_used: HashMap<_, _> = counters
        .iter()
        .map(|counter| {
            let key = (counter.merchant.as_str(), counter.ordering_key.as_str());
            (key, counter.last_sequence - added.get(&key).copied().unwrap_or_default())
        })
        .collect();
    let sequences = messages.iter().map(|message| {
        let key = (message.merchant.as_str(), message.ordering_key.as_deref()?);
        let last = last_used.get_mut(&key)?;
        *last += 1;
        Some(*last)
    });
    Ok(sequences.map(|sequence| sequence.unwrap_or(1)).collect())
}
