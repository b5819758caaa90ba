//! Loads the stored state of the orders and refunds in a batch.

use diesel::sql_types::{Array, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::json::Digest;
use domain::order::{OrderVersion, RefundVersion};
use platform::Timestamp;
use platform::database::{DatabaseError, prepared};

use super::error::unreadable;
use crate::write_batch::{Key, Stored};

/// The kind of a [`StoredRow`].
const ORDER: i32 = 1;
const REFUND: i32 = 2;
const REFUND_LINE: i32 = 3;

platform::rows! {
    struct StoredRow {
        kind: i32,
        position: i64,
        updated_at: Option<Timestamp>,
        digest: Option<Vec<u8>>,
        /// The order of a refund, or the refund of a line.
        owner: Option<Vec<u8>>,
    }
}

fn stored_sql() -> String {
    format!(
        "SELECT {ORDER} AS kind, position, updated_at, digest, NULL AS owner \
         FROM unnest($1, $2) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL ( \
             SELECT updated_at, digest FROM orders \
             WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
         ) AS orders \
         UNION ALL \
         SELECT {REFUND}, position, NULL, digest, order_digest \
         FROM unnest($3, $4) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL ( \
             SELECT order_digest, digest FROM refunds \
             WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
         ) AS refunds \
         UNION ALL \
         SELECT {REFUND_LINE}, position, NULL, NULL, refund_digest \
         FROM unnest($5, $6) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL ( \
             SELECT refund_digest FROM refund_lines \
             WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
         ) AS refund_lines",
    )
}

/// Loads the stored state of orders, refunds and refund lines in one query.
pub(crate) async fn load_stored<'a>(
    mut conn: &AsyncPgConnection,
    orders: &[Key<'a>],
    refunds: &[Key<'a>],
    refund_lines: &[Key<'a>],
) -> Result<Stored<'a>, DatabaseError> {
    let mut query = diesel::sql_query(stored_sql()).into_boxed();
    for keys in [orders, refunds, refund_lines] {
        let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
        query = query.bind::<Array<Text>, _>(merchants).bind::<Array<Text>, _>(identifiers);
    }
    let mut stored = Stored::default();
    for row in prepared(query).load::<StoredRow>(&mut conn).await? {
        let digest = |bytes: Option<Vec<u8>>| {
            bytes.as_deref().map(Digest::try_from).transpose().map_err(unreadable)
        };
        match (row.kind, row.updated_at, digest(row.digest)?, digest(row.owner)?) {
            (ORDER, Some(updated_at), Some(digest), _) => {
                let key = at(orders, row.position);
                stored.orders.extend(key.map(|key| (key, OrderVersion { updated_at, digest })));
            }
            (REFUND, _, Some(digest), Some(order)) => {
                let key = at(refunds, row.position);
                stored.refunds.extend(key.map(|key| (key, RefundVersion { order, digest })));
            }
            (_, _, _, Some(refund)) => {
                stored.refund_lines.extend(at(refund_lines, row.position).map(|key| (key, refund)));
            }
            _ => {}
        }
    }
    Ok(stored)
}

fn at<T: Copy>(keys: &[T], position: i64) -> Option<T> {
    keys.get(usize::try_from(position).ok()?.checked_sub(1)?).copied()
}
