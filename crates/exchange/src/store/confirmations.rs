//! Confirmed returns: heard, claimed by whoever works on them, decided once.

use std::num::NonZeroU32;
use std::time::Duration;

use chrono::TimeDelta;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::returns::{ReturnConfirmed, UnitId};
use platform::database::{DatabaseError, prepared};
use platform::{Timestamp, chain};

use super::{document, written};

/// So many bytes are taken at once, however few confirmations they are.
const FULL_LOAD: i64 = 8 * 1024 * 1024;

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

/// Takes some of what waits, oldest first, and holds it for a while: at the most so many, and no more
/// once they are a full load. Of those that speak of one order the first goes alone, until there is
/// an order and the others can be told. What cannot be read is put aside.
pub(crate) async fn claim(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    lease: Duration,
    most: NonZeroU32,
) -> Result<Vec<Claimed>, DatabaseError> {
    let until = now + TimeDelta::from_std(lease).unwrap_or(TimeDelta::MAX);
    let claim = diesel::sql_query(
        "WITH next AS ( \
             SELECT own.position, octet_length(own.document) AS bytes, \
             orders.confirmation IS NOT NULL AS taken \
             FROM confirmations AS own \
             LEFT JOIN exchange_orders AS orders USING (merchant, original_order_id) \
             WHERE own.state = 'waiting' AND own.claimed_until <= $1 \
             AND (orders.confirmation IS NOT NULL OR NOT EXISTS ( \
                 SELECT FROM confirmations AS earlier WHERE earlier.state = 'waiting' \
                 AND earlier.merchant = own.merchant \
                 AND earlier.original_order_id = own.original_order_id \
                 AND earlier.position < own.position \
             )) \
             ORDER BY own.position LIMIT $2 FOR UPDATE OF own SKIP LOCKED \
         ), weighed AS ( \
             SELECT *, sum(bytes) OVER (ORDER BY position) - bytes AS bytes_before FROM next \
         ) \
         UPDATE confirmations AS own SET claimed_until = $3 FROM weighed AS next \
         WHERE own.position = next.position AND next.bytes_before < $4 \
         RETURNING own.position, own.document, own.received_at, own.traceparent, next.taken",
    )
    .bind::<Timestamptz, _>(now)
    .bind::<BigInt, _>(i64::from(most.get()))
    .bind::<Timestamptz, _>(until)
    .bind::<BigInt, _>(FULL_LOAD);
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
