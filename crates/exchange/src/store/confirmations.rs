//! Confirmed returns: heard, claimed by whoever works on them, decided once.

use std::time::Duration;

use chrono::TimeDelta;
use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::returns::{ReturnConfirmed, UnitId};
use platform::database::{DatabaseError, prepared};
use platform::{Timestamp, chain};

use super::{document, written};

/// What became of a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Ordered,
    AlreadyExchanged,
    OutOfStock,
    /// Nothing: people must look at it.
    Unreadable,
}

impl Decision {
    fn word(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::AlreadyExchanged => "already_exchanged",
            Self::OutOfStock => "out_of_stock",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A confirmation to work on.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) position: i64,
    pub(crate) confirmed: ReturnConfirmed,
    pub(crate) received_at: Timestamp,
    pub(crate) traceparent: Option<String>,
    /// Whether an exchange order was placed for its order already.
    pub(crate) taken: bool,
    /// How long it is as it was written down.
    pub(crate) bytes: usize,
}

/// What there is room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) places: i64,
    pub(crate) bytes: i64,
    /// The merchants of what is under way, each as often as it has something there.
    pub(crate) busy: Vec<String>,
}

/// Writes a confirmation down, unless it is known.
pub(crate) async fn hear(
    conn: &mut AsyncPgConnection,
    confirmed: &ReturnConfirmed,
    traceparent: Option<&str>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let insert = diesel::sql_query(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, \
         document, received_at, claimed_until, traceparent) \
         VALUES ($1, $2, $3, 'waiting', $4, $5, $5, $6) \
         ON CONFLICT ON CONSTRAINT confirmations_once DO NOTHING",
    )
    .bind::<Text, _>(confirmed.merchant.as_str())
    .bind::<Text, _>(&confirmed.original_order_id)
    .bind::<Text, _>(&confirmed.rma_identifier)
    .bind::<Text, _>(written(confirmed)?)
    .bind::<Timestamptz, _>(now)
    .bind::<Nullable<Text>, _>(traceparent);
    prepared(insert).execute(conn).await?;
    Ok(())
}

#[derive(QueryableByName)]
struct ClaimedRow {
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Text)]
    document: String,
    #[diesel(sql_type = Timestamptz)]
    received_at: Timestamp,
    #[diesel(sql_type = Nullable<Text>)]
    traceparent: Option<String>,
    #[diesel(sql_type = Bool)]
    taken: bool,
}

/// Takes some of what waits and holds it for a while: what there are places for, and no more once it
/// is as long as it may be. Of those that speak of one order the first goes alone, until there is an
/// order and the others can be told. What cannot be read is put aside.
pub(crate) async fn claim(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    lease: Duration,
    space: &Space,
) -> Result<Vec<Claimed>, DatabaseError> {
    let until = now + TimeDelta::from_std(lease).unwrap_or(TimeDelta::MAX);
    let claim = diesel::sql_query(CLAIM)
        .bind::<Timestamptz, _>(now)
        .bind::<Timestamptz, _>(until)
        .bind::<BigInt, _>(space.places)
        .bind::<BigInt, _>(space.bytes)
        .bind::<Array<Text>, _>(&space.busy);
    let rows: Vec<ClaimedRow> = prepared(claim).load(conn).await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        match document(&row.document) {
            Ok(confirmed) => claimed.push(Claimed {
                position: row.position,
                confirmed,
                received_at: row.received_at,
                traceparent: row.traceparent,
                taken: row.taken,
                bytes: row.document.len(),
            }),
            Err(error) => {
                let position = row.position;
                tracing::error!(error = chain(&error), "confirmation {position} cannot be read");
                decide(conn, position, Decision::Unreadable, &[], now).await?;
            }
        }
    }
    Ok(claimed)
}

/// Merchants take turns: everyone's first goes before anyone's second, and what a merchant has under
/// way counts. Among equals chance decides; the oldest first would always be the same merchant's.
///
/// Merchants are found by skipping through the index, and none is asked for more than its part of
/// the places, so that a long backlog of one costs the others nothing. Whether there is an order is
/// looked up for each: a join might read them all.
const CLAIM: &str = "WITH RECURSIVE merchants (merchant) AS ( \
     (SELECT merchant FROM confirmations WHERE state = 'waiting' ORDER BY merchant LIMIT 1) \
     UNION ALL \
     SELECT next.merchant FROM merchants, LATERAL ( \
         SELECT merchant FROM confirmations \
         WHERE state = 'waiting' AND merchant > merchants.merchant \
         ORDER BY merchant LIMIT 1 \
     ) AS next \
 ), next AS ( \
     SELECT next.* FROM merchants, LATERAL ( \
         SELECT own.merchant, own.position, octet_length(own.document) AS bytes, ordered.taken \
         FROM confirmations AS own, LATERAL (SELECT ( \
             SELECT true FROM exchange_orders AS orders WHERE orders.merchant = own.merchant \
             AND orders.original_order_id = own.original_order_id \
         ) IS TRUE AS taken) AS ordered \
         WHERE own.merchant = merchants.merchant AND own.state = 'waiting' \
         AND own.claimed_until <= $1 AND (ordered.taken OR NOT EXISTS ( \
             SELECT FROM confirmations AS earlier WHERE earlier.state = 'waiting' \
             AND earlier.merchant = own.merchant \
             AND earlier.original_order_id = own.original_order_id \
             AND earlier.position < own.position \
         )) \
         ORDER BY own.position LIMIT (SELECT GREATEST($3 / count(*), 1) FROM merchants) \
         FOR UPDATE OF own SKIP LOCKED \
     ) AS next \
 ), ranked AS ( \
     SELECT position, bytes, taken, random() AS luck, \
     row_number() OVER (PARTITION BY merchant ORDER BY position) + ( \
         SELECT count(*) FROM unnest($5) AS busy (merchant) WHERE busy.merchant = next.merchant \
     ) AS turn FROM next \
 ), weighed AS ( \
     SELECT position, taken, sum(bytes) OVER (ORDER BY turn, luck) - bytes AS bytes_before \
     FROM (SELECT * FROM ranked ORDER BY turn, luck LIMIT $3) AS first \
 ), claimed AS ( \
     UPDATE confirmations SET claimed_until = $2 WHERE position = ANY ( \
         ARRAY (SELECT position FROM weighed WHERE bytes_before < $4) \
     ) RETURNING position, document, received_at, traceparent \
 ) \
 SELECT claimed.*, weighed.taken FROM claimed JOIN weighed USING (position)";

#[derive(QueryableByName)]
struct Waiting {
    #[diesel(sql_type = Bool)]
    waiting: bool,
}

/// Whether a confirmation still waits; if so, nobody else decides it before this transaction ends.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    position: i64,
) -> Result<bool, DatabaseError> {
    let lock = diesel::sql_query(
        "SELECT state = 'waiting' AS waiting FROM confirmations WHERE position = $1 FOR UPDATE",
    );
    let Waiting { waiting } = prepared(lock.bind::<BigInt, _>(position)).get_result(conn).await?;
    Ok(waiting)
}

pub(crate) async fn decide(
    conn: &mut AsyncPgConnection,
    position: i64,
    decision: Decision,
    out_of_stock: &[UnitId],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let update = diesel::sql_query(
        "UPDATE confirmations SET state = $2, out_of_stock = $3, decided_at = $4 \
         WHERE position = $1",
    )
    .bind::<BigInt, _>(position)
    .bind::<Text, _>(decision.word())
    .bind::<Text, _>(written(&out_of_stock)?)
    .bind::<Timestamptz, _>(now);
    prepared(update).execute(conn).await?;
    Ok(())
}
