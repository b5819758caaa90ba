//! Repairs ordering keys whose first delivery is blocked.

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, prepared},
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
const UNBLOCK_FIRST_DELIVERIES: &str = "WITH blocked AS MATERIALIZED ( \
     SELECT merchant, kind, id, ordering_key, sequence FROM deliveries \
     WHERE state = 'blocked' AND (merchant, kind, id) > ($1, $2, $3) \
     ORDER BY merchant, kind, id LIMIT $4 \
 ), first AS ( \
     SELECT id FROM blocked WHERE ( \
         SELECT true FROM deliveries AS earlier \
         WHERE earlier.merchant = blocked.merchant \
         AND earlier.ordering_key = blocked.ordering_key AND earlier.sequence < blocked.sequence \
         ORDER BY earlier.sequence LIMIT 1 \
     ) IS NOT TRUE \
 ), unblocked AS ( \
     UPDATE deliveries SET state = 'ready', next_attempt_at = GREATEST(next_attempt_at, $5) \
     WHERE id = ANY (ARRAY (SELECT id FROM first)) AND (state = 'blocked') IS TRUE \
     RETURNING id \
 ) \
 SELECT merchant, kind, id, (SELECT count(*) FROM blocked) AS checked, \
 (SELECT count(*) FROM unblocked) AS unblocked \
 FROM blocked ORDER BY merchant DESC, kind DESC, id DESC LIMIT 1";

/// Makes blocked deliveries ready that are the first of their ordering key, and returns their number.
///
/// Two transactions that settle deliveries of one key at the same time, which a forced replay makes
/// possible, each still see the other's delivery and unblock nothing. Locking the key instead would
/// make settling wait for every transaction that appends to it. Each call checks the next
/// [`DELIVERIES_PER_CHECK`] blocked deliveries after the cursor.
pub(crate) async fn unblock_first_deliveries(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    cursor: &mut BlockedCursor,
) -> Result<i64, DatabaseError> {
    let statement = sql_query(UNBLOCK_FIRST_DELIVERIES)
        .bind::<Text, _>(&cursor.0)
        .bind::<Text, _>(&cursor.1)
        .bind::<diesel::sql_types::Uuid, _>(cursor.2)
        .bind::<BigInt, _>(DELIVERIES_PER_CHECK)
        .bind::<Timestamptz, _>(now);
    let last: Option<LastChecked> = prepared(statement).get_result(conn).await.optional()?;
    let unblocked = last.as_ref().map_or(0, |last| last.unblocked);
    *cursor = match last {
        Some(last) if last.checked >= DELIVERIES_PER_CHECK => (last.merchant, last.kind, last.id),
        _ => BlockedCursor::default(),
    };
    Ok(unblocked)
}
