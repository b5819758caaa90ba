//! Settles attempts: updates the deliveries, logs the attempts and updates the windows.
//!
//! A delivery is settled only if its row still waits for the attempt that was made. Otherwise the
//! message was a duplicate, and its attempt is only logged.

use std::collections::HashSet;

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::future::join;
use platform::{
    Timestamp,
    database::{DatabaseError, column, prepared, sql},
};
use uuid::Uuid;

use super::Windows;
use super::log_attempts::log_attempts;
use crate::outcome::Decision;
use crate::settlement::Settlement;

platform::rows! {
    struct SettledRow {
        id: Uuid,
        merchant: String,
        ordering_key: Option<String>,
        is_final: bool,
    }
}

/// Effect of [`settle`].
#[derive(Debug)]
pub(crate) struct Settled {
    /// Deliveries that were settled.
    pub(crate) ids: HashSet<Uuid>,
    /// Deliveries behind them that are ready now.
    pub(crate) unblocked: usize,
}

/// Settles a batch. Retries, and the next deliveries of the ordering keys, are due at `now` at the earliest:
/// the dispatcher finds deliveries by the time at which they became due, and does not look for earlier
/// times again. A settlement that waited for the database may have a retry time that is over.
pub(crate) async fn settle(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    windows: &mut Windows,
    batch: &[Settlement],
) -> Result<Settled, DatabaseError> {
    let settled = update_deliveries(conn, now, batch).await?;
    let ids: HashSet<_> = settled.iter().map(|row| row.id).collect();
    let ordering_keys: Vec<_> = settled
        .iter()
        .filter(|row| row.is_final)
        .filter_map(|row| Some((row.merchant.as_str(), row.ordering_key.as_deref()?)))
        .collect();
    // Both statements are sent at once and run in this order.
    let (unblocked, logged) =
        join(unblock_next(conn, now, ordering_keys), log_attempts(conn, batch, &ids)).await;
    // If the first one failed, the transaction is aborted, and that is all that the second one reports.
    let unblocked = unblocked?;
    logged?;
    windows.update(conn, batch).await?;
    Ok(Settled { ids, unblocked })
}

/// Rows are found by their ids and not by a join, see `claim`: `IS TRUE` keeps the planner from
/// turning the condition into one.
const UPDATE_DELIVERIES: &str = include_str!("update_deliveries.sql");

async fn update_deliveries(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    batch: &[Settlement],
) -> Result<Vec<SettledRow>, DatabaseError> {
    let next_attempts = column(batch, |settlement| match settlement.decision {
        Decision::RetryAt(at) => Some(at),
        Decision::Delivered | Decision::Dead => None,
    });
    let statement = sql(
        UPDATE_DELIVERIES,
        (
            column(batch, Settlement::id),
            column(batch, |settlement| settlement.message.replay_number),
            column(batch, |settlement| settlement.message.attempt_number),
            next_attempts,
            now,
        ),
    );
    Ok(prepared(statement).load(conn).await?)
}

const UNBLOCK_NEXT: &str = include_str!("unblock_next.sql");

/// Makes the next delivery of each ordering key ready, and returns the number of those that were blocked.
/// They are due at `now` at the earliest, see [`settle`].
///
/// This is a separate statement, because it must see deliveries that were blocked while the statement
/// before waited for a lock. The connection is shared, so that the caller can send it together with others.
pub(super) async fn unblock_next(
    mut conn: &AsyncPgConnection,
    now: Timestamp,
    ordering_keys: Vec<(&str, &str)>,
) -> Result<usize, DatabaseError> {
    if ordering_keys.is_empty() {
        return Ok(0);
    }
    let (merchants, ordering_keys): (Vec<_>, Vec<_>) = ordering_keys.into_iter().unzip();
    let statement = sql(UNBLOCK_NEXT, (merchants, ordering_keys, now));
    Ok(prepared(statement).execute(&mut conn).await?)
}
