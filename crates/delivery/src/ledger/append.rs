//! Writing messages down, in the transaction of whoever caused them.
//!
//! A ordering_key's counter is a row that the transaction locks, so two transactions that write to one
//! ordering_key come one after the other, and a message is never visible before its predecessors.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Binary, Nullable, Text, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{access::MerchantId, message_kind::MessageKind};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
    telemetry,
};
use uuid::Uuid;

use super::new_id;

/// A message that a service wants delivered.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub merchant: MerchantId,
    pub kind: MessageKind,
    /// Messages of a ordering_key arrive in order, for example `rma:<id>`. No ordering_key, no order.
    pub ordering_key: Option<String>,
    /// For example `rma.created`.
    pub event: String,
    /// Sent byte for byte.
    pub body: Bytes,
}

#[derive(QueryableByName)]
struct OrderingKey {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    ordering_key: String,
    #[diesel(sql_type = BigInt)]
    last: i64,
}

/// Writes messages and returns their ids, in the order given.
pub(crate) async fn append(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    messages: &[NewMessage],
) -> Result<Vec<Uuid>, DatabaseError> {
    let mut ids: Vec<_> = messages.iter().map(|_| new_id(now)).collect();
    if ids.is_empty() {
        return Ok(ids);
    }
    // Ids of one moment are in no order, and replays go by them: the order of ordering_keys must be theirs.
    ids.sort_unstable();
    let sequences = sequences(conn, messages).await?;
    let each = |text: fn(&NewMessage) -> &str| messages.iter().map(text).collect::<Vec<_>>();
    let ordering_keys: Vec<_> =
        messages.iter().map(|message| message.ordering_key.as_deref()).collect();
    let bodies: Vec<_> = messages.iter().map(|message| message.body.as_ref()).collect();
    prepared(
        sql_query(
            "WITH given AS ( \
                 SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7) \
                 AS given (id, merchant, kind, ordering_key, sequence, event, body) \
             ), kept AS ( \
                 INSERT INTO delivery_messages \
                 SELECT id, merchant, kind, ordering_key, sequence, event, body, $8, $9 FROM given \
             ) \
             INSERT INTO deliveries (id, merchant, kind, ordering_key, sequence, state, due_at) \
             SELECT id, merchant, kind, ordering_key, sequence, 'ready', $9 FROM given",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(&ids)
        .bind::<Array<Text>, _>(each(|message| message.merchant.as_str()))
        .bind::<Array<Text>, _>(each(|message| message.kind.name()))
        .bind::<Array<Nullable<Text>>, _>(ordering_keys)
        .bind::<Array<BigInt>, _>(sequences)
        .bind::<Array<Text>, _>(each(|message| &message.event))
        .bind::<Array<Binary>, _>(bodies)
        .bind::<Nullable<Text>, _>(telemetry::traceparent())
        .bind::<Timestamptz, _>(now),
    )
    .execute(conn)
    .await?;
    Ok(ids)
}

/// Each message's number in its ordering_key. One without a ordering_key is the first of its own.
async fn sequences(
    conn: &mut AsyncPgConnection,
    messages: &[NewMessage],
) -> Result<Vec<i64>, DatabaseError> {
    let mut wanted = BTreeMap::<(&str, &str), i64>::new();
    for message in messages {
        if let Some(ordering_key) = &message.ordering_key {
            *wanted.entry((message.merchant.as_str(), ordering_key)).or_default() += 1;
        }
    }
    if wanted.is_empty() {
        return Ok(vec![1; messages.len()]);
    }
    // In the order of the key's bytes: two transactions that touch the same ordering_keys do not deadlock.
    let counted: Vec<OrderingKey> = prepared(
        sql_query(
            "INSERT INTO delivery_ordering_keys AS known (merchant, ordering_key, last) \
             SELECT * FROM unnest($1, $2, $3) \
             ON CONFLICT (merchant, ordering_key) DO UPDATE SET last = known.last + excluded.last \
             RETURNING merchant, ordering_key, last",
        )
        .bind::<Array<Text>, _>(wanted.keys().map(|(merchant, _)| *merchant).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(
            wanted.keys().map(|(_, ordering_key)| *ordering_key).collect::<Vec<_>>(),
        )
        .bind::<Array<BigInt>, _>(wanted.values().copied().collect::<Vec<_>>()),
    )
    .load(conn)
    .await?;
    let mut next: HashMap<_, _> = counted
        .iter()
        .map(|ordering_key| {
            let key = (ordering_key.merchant.as_str(), ordering_key.ordering_key.as_str());
            (key, ordering_key.last - wanted.get(&key).copied().unwrap_or_default())
        })
        .collect();
    let mut numbers = Vec::with_capacity(messages.len());
    for message in messages {
        let key = (message.merchant.as_str(), message.ordering_key.as_deref().unwrap_or_default());
        numbers.push(match next.get_mut(&key) {
            Some(last) if message.ordering_key.is_some() => {
                *last += 1;
                *last
            }
            _ => 1,
        });
    }
    Ok(numbers)
}
