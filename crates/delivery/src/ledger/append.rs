//! Writing messages down, in the transaction of whoever caused them.
//!
//! A lane's counter is a row that the transaction locks, so two transactions that write to one
//! lane come one after the other, and a message is never visible before its predecessors.

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
    /// Messages of a lane arrive in order, for example `rma:<id>`. No lane, no order.
    pub lane: Option<String>,
    /// For example `rma.created`.
    pub event: String,
    /// Sent byte for byte.
    pub body: Bytes,
}

#[derive(QueryableByName)]
struct Lane {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    lane: String,
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
    // Ids of one moment are in no order, and replays go by them: the order of lanes must be theirs.
    ids.sort_unstable();
    let sequences = sequences(conn, messages).await?;
    let each = |text: fn(&NewMessage) -> &str| messages.iter().map(text).collect::<Vec<_>>();
    let lanes: Vec<_> = messages.iter().map(|message| message.lane.as_deref()).collect();
    let bodies: Vec<_> = messages.iter().map(|message| message.body.as_ref()).collect();
    prepared(
        sql_query(
            "WITH given AS ( \
                 SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7) \
                 AS given (id, merchant, kind, lane, sequence, event, body) \
             ), kept AS ( \
                 INSERT INTO delivery_messages \
                 SELECT id, merchant, kind, lane, sequence, event, body, $8, $9 FROM given \
             ) \
             INSERT INTO deliveries (id, merchant, kind, lane, sequence, state, due_at) \
             SELECT id, merchant, kind, lane, sequence, 'ready', $9 FROM given",
        )
        .bind::<Array<diesel::sql_types::Uuid>, _>(&ids)
        .bind::<Array<Text>, _>(each(|message| message.merchant.as_str()))
        .bind::<Array<Text>, _>(each(|message| message.kind.name()))
        .bind::<Array<Nullable<Text>>, _>(lanes)
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

/// Each message's number in its lane. One without a lane is the first of its own.
async fn sequences(
    conn: &mut AsyncPgConnection,
    messages: &[NewMessage],
) -> Result<Vec<i64>, DatabaseError> {
    let mut wanted = BTreeMap::<(&str, &str), i64>::new();
    for message in messages {
        if let Some(lane) = &message.lane {
            *wanted.entry((message.merchant.as_str(), lane)).or_default() += 1;
        }
    }
    if wanted.is_empty() {
        return Ok(vec![1; messages.len()]);
    }
    // In the order of the key's bytes: two transactions that touch the same lanes do not deadlock.
    let counted: Vec<Lane> = prepared(
        sql_query(
            "INSERT INTO delivery_lanes AS known (merchant, lane, last) \
             SELECT * FROM unnest($1, $2, $3) \
             ON CONFLICT (merchant, lane) DO UPDATE SET last = known.last + excluded.last \
             RETURNING merchant, lane, last",
        )
        .bind::<Array<Text>, _>(wanted.keys().map(|(merchant, _)| *merchant).collect::<Vec<_>>())
        .bind::<Array<Text>, _>(wanted.keys().map(|(_, lane)| *lane).collect::<Vec<_>>())
        .bind::<Array<BigInt>, _>(wanted.values().copied().collect::<Vec<_>>()),
    )
    .load(conn)
    .await?;
    let mut next: HashMap<_, _> = counted
        .iter()
        .map(|lane| {
            let key = (lane.merchant.as_str(), lane.lane.as_str());
            (key, lane.last - wanted.get(&key).copied().unwrap_or_default())
        })
        .collect();
    let mut numbers = Vec::with_capacity(messages.len());
    for message in messages {
        let key = (message.merchant.as_str(), message.lane.as_deref().unwrap_or_default());
        numbers.push(match next.get_mut(&key) {
            Some(last) if message.lane.is_some() => {
                *last += 1;
                *last
            }
            _ => 1,
        });
    }
    Ok(numbers)
}
