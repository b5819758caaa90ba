//! Repairs ordering keys whose first delivery is blocked.

use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::database::DatabaseError;

/// Ordering keys that one call of [`unblock_heads`] checks.
const KEYS_PER_CHECK: i64 = 1000;

/// Merchant and ordering key that [`unblock_heads`] checked last.
pub(crate) type OrderingKeyCursor = (String, String);

#[derive(QueryableByName)]
struct LastChecked {
    #[diesel(sql_type = Text)]
    merchant: String,
    #[diesel(sql_type = Text)]
    ordering_key: String,
    #[diesel(sql_type = BigInt)]
    checked: i64,
    #[diesel(sql_type = BigInt)]
    unblocked: i64,
}

/// LIMIT 1 makes the planner use the index on ordering keys, whatever size it takes the table for.
const UNBLOCK_HEADS: &str = "WITH RECURSIVE heads (merchant, ordering_key, id, state, checked) AS ( \
     (SELECT merchant, ordering_key, id, state, 1::bigint FROM deliveries \
     WHERE ordering_key IS NOT NULL AND (merchant, ordering_key) > ($1, $2) \
     ORDER BY merchant, ordering_key, sequence LIMIT 1) \
     UNION ALL \
     SELECT next.*, heads.checked + 1 FROM heads, LATERAL ( \
         SELECT merchant, ordering_key, id, state FROM deliveries \
         WHERE ordering_key IS NOT NULL \
         AND (merchant, ordering_key) > (heads.merchant, heads.ordering_key) \
         ORDER BY merchant, ordering_key, sequence LIMIT 1 \
     ) AS next \
     WHERE heads.checked < $3 \
 ), unblocked AS ( \
     UPDATE deliveries SET state = 'ready' \
     WHERE id = ANY (ARRAY (SELECT id FROM heads WHERE state = 'blocked')) AND state = 'blocked' \
     RETURNING id \
 ) \
 SELECT merchant, ordering_key, checked, (SELECT count(*) FROM unblocked) AS unblocked \
 FROM heads ORDER BY checked DESC LIMIT 1";

/// Makes blocked deliveries ready that are the first of their ordering key, and returns their number.
///
/// Two transactions that settle deliveries of one key at the same time, which a forced replay makes
/// possible, each still see the other's delivery and unblock nothing. Locking the key instead would
/// make settling wait for every transaction that appends to it. Each call checks the next
/// [`KEYS_PER_CHECK`] keys after the cursor.
pub(crate) async fn unblock_heads(
    conn: &mut AsyncPgConnection,
    cursor: &mut OrderingKeyCursor,
) -> Result<i64, DatabaseError> {
    let last: Option<LastChecked> = sql_query(UNBLOCK_HEADS)
        .bind::<Text, _>(&cursor.0)
        .bind::<Text, _>(&cursor.1)
        .bind::<BigInt, _>(KEYS_PER_CHECK)
        .get_result(conn)
        .await
        .optional()?;
    let unblocked = last.as_ref().map_or(0, |last| last.unblocked);
    *cursor = match last {
        Some(last) if last.checked >= KEYS_PER_CHECK => (last.merchant, last.ordering_key),
        _ => OrderingKeyCursor::default(),
    };
    Ok(unblocked)
}
