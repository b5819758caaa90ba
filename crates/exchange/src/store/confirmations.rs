//! Confirmed returns: inserted when received, leased to one replica, decided once.

use std::time::Duration;

use chrono::TimeDelta;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::exchange::FailedItem;
use domain::returns::ReturnConfirmed;
use platform::database::{DatabaseError, prepared, sql};
use platform::{Timestamp, chain};
use strum::IntoStaticStr;

use super::{from_json, to_json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum ConfirmationDecision {
    Ordered,
    AlreadyExchanged,
    /// No unit can be exchanged.
    NotExchangeable,
    /// The stored JSON cannot be parsed; an operator has to inspect it.
    Unreadable,
}

/// A confirmation that is leased to this replica.
#[derive(Debug)]
pub(crate) struct LeasedConfirmation {
    pub(crate) position: i64,
    pub(crate) confirmed: ReturnConfirmed,
    pub(crate) received_at: Timestamp,
    pub(crate) traceparent: Option<String>,
    /// Whether the shopper's data was erased.
    pub(crate) erased: bool,
    /// Whether the original order already has an exchange order.
    pub(crate) has_order: bool,
    /// Length of the stored JSON.
    pub(crate) bytes: usize,
}

/// Limits on the confirmations to lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) slots: i64,
    pub(crate) bytes: i64,
    /// The merchant of each confirmation in flight, with repetitions.
    pub(crate) busy: Vec<String>,
}

/// Inserts a confirmation, unless the return is known.
pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    confirmed: &ReturnConfirmed,
    traceparent: Option<&str>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let insert = sql(
        "INSERT INTO confirmations (merchant, original_order_id, rma_identifier, state, \
         document, received_at, leased_until, traceparent) \
         VALUES ($1, $2, $3, 'waiting', $4, $5, $5, $6) \
         ON CONFLICT ON CONSTRAINT confirmations_once DO NOTHING",
        (
            confirmed.merchant.as_str(),
            &confirmed.original_order_id,
            &confirmed.rma_identifier,
            to_json(confirmed)?,
            now,
            traceparent,
        ),
    );
    prepared(insert).execute(conn).await?;
    Ok(())
}

platform::rows! {
    struct LeasedRow {
        position: i64,
        document: String,
        received_at: Timestamp,
        traceparent: Option<String>,
        erased: bool,
        has_order: bool,
    }
}

/// Leases waiting confirmations, up to the capacity in number and bytes. Merchants take turns.
///
/// Confirmations of one original order wait for the first of them, until there is an exchange order
/// and the others can be rejected. Rows that cannot be parsed are marked unreadable.
pub(crate) async fn lease_waiting(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    lease: Duration,
    capacity: &Capacity,
) -> Result<Vec<LeasedConfirmation>, DatabaseError> {
    let until = now + TimeDelta::from_std(lease).unwrap_or(TimeDelta::MAX);
    let statement =
        sql(LEASE_WAITING, (now, until, capacity.slots, capacity.bytes, &capacity.busy));
    let rows: Vec<LeasedRow> = statement.load(conn).await?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        match from_json(&row.document) {
            Ok(confirmed) => leased.push(LeasedConfirmation {
                position: row.position,
                confirmed,
                received_at: row.received_at,
                traceparent: row.traceparent,
                erased: row.erased,
                has_order: row.has_order,
                bytes: row.document.len(),
            }),
            Err(error) => {
                let position = row.position;
                tracing::error!(error = chain(&error), "confirmation {position} cannot be read");
                save_decision(conn, position, ConfirmationDecision::Unreadable, &[], now).await?;
            }
        }
    }
    Ok(leased)
}

/// Merchants take turns: the first confirmation of every merchant precedes the second of any, and
/// confirmations in flight count. Ties are broken at random, because the oldest would always belong to
/// the same merchant.
///
/// A skip scan of the index finds the merchants. Each contributes at most its share of the slots, so
/// that the backlog of one merchant does not slow the query. A subquery for each row finds the exchange
/// order, because a join might read the whole table. The statement is planned each time: a plan that was made while the
/// tables were empty would read all confirmations of the merchant.
const LEASE_WAITING: &str = include_str!("lease_confirmations.sql");

platform::rows! { struct Waiting { waiting: bool } }

/// Locks a confirmation until the transaction ends, and returns whether it is still waiting as it was
/// leased. A confirmation that was erased meanwhile is leased again after its lease.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    leased: &LeasedConfirmation,
) -> Result<bool, DatabaseError> {
    let lock = sql(
        "SELECT state = 'waiting' AND erased = $2 AS waiting FROM confirmations \
         WHERE position = $1 FOR UPDATE",
        (leased.position, leased.erased),
    );
    let Waiting { waiting } = prepared(lock).get_result(conn).await?;
    Ok(waiting)
}

/// Stores the decision about a confirmation, with the items that failed.
pub(crate) async fn save_decision(
    conn: &mut AsyncPgConnection,
    position: i64,
    decision: ConfirmationDecision,
    failed: &[FailedItem],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let update = sql(
        "UPDATE confirmations SET state = $2, failed = $3, decided_at = $4 \
         WHERE position = $1",
        (position, <&str>::from(decision), to_json(&failed)?, now),
    );
    prepared(update).execute(conn).await?;
    Ok(())
}
