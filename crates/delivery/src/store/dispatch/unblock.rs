//! Repairs ordering keys whose first delivery is blocked.

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared, sql},
};
use uuid::Uuid;

/// Blocked deliveries that one call of [`unblock_first_deliveries`] checks.
const DELIVERIES_PER_CHECK: i64 = 1000;

/// Merchant, kind and id of the delivery that [`unblock_first_deliveries`] checked last.
pub(crate) type BlockedCursor = (String, String, Uuid);

platform::rows! {
    struct LastChecked {
        merchant: String,
        kind: String,
        id: Uuid,
        checked: i64,
        unblocked: i64,
    }
}

/// `first` looks for an earlier delivery with ORDER BY, see `claim`. An unblocked delivery is due at
/// `$5` at the earliest, see `settle`.
const UNBLOCK_FIRST_DELIVERIES: &str = include_str!("unblock_first_deliveries.sql");

/// Makes blocked deliveries ready that are the first of their ordering key, and returns their number.
///
/// Two transactions that settle deliveries of one key at the same time, which a forced replay makes
/// possible, each still see the other's delivery and unblock nothing. Locking the key instead would
/// make settling wait for every transaction that appends to it. Deliveries that another transaction has locked
/// are left for the next round. Each call checks the next
/// [`DELIVERIES_PER_CHECK`] blocked deliveries after the cursor.
pub(crate) async fn unblock_first_deliveries(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    cursor: &mut BlockedCursor,
) -> Result<i64, DatabaseError> {
    let statement =
        sql(UNBLOCK_FIRST_DELIVERIES, (&cursor.0, &cursor.1, cursor.2, DELIVERIES_PER_CHECK, now));
    let last: Option<LastChecked> = prepared(statement).get_result(conn).await.optional()?;
    let unblocked = last.as_ref().map_or(0, |last| last.unblocked);
    *cursor = match last {
        Some(last) if last.checked >= DELIVERIES_PER_CHECK => (last.merchant, last.kind, last.id),
        _ => BlockedCursor::default(),
    };
    Ok(unblocked)
}
