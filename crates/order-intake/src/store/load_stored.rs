//! Loads the stored state of the orders and refunds in a batch.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::json::Digest;
use domain::order::{OrderVersion, RefundVersion};
use platform::Timestamp;
use platform::database::{DatabaseError, Each, column, prepared, sql};

use super::error::unreadable;
use crate::write_batch::{Key, Stored};

/// The kind of a [`StoredRow`], as in `load_stored.sql`.
const ORDER: i32 = 1;
const REFUND: i32 = 2;
const REFUND_LINE: i32 = 3;

platform::rows! {
    struct StoredRow {
        kind: i32,
        position: i64,
        updated_at: Option<Timestamp>,
        digest: Option<Vec<u8>>,
        /// The digest of the identifier of a refund's order, or of a line's refund.
        parent_digest: Option<Vec<u8>>,
    }
}

/// Loads the stored state of orders, refunds and refund lines in one query.
pub(crate) async fn load_stored<'a>(
    mut conn: &AsyncPgConnection,
    orders: &[Key<'a>],
    refunds: &[Key<'a>],
    refund_lines: &[Key<'a>],
) -> Result<Stored<'a>, DatabaseError> {
    let columns = [orders, refunds, refund_lines].map(|keys| {
        (column(keys, |(merchant, _)| *merchant), column(keys, |(_, identifier)| *identifier))
    });
    let query = sql(include_str!("load_stored.sql"), Each(columns));
    let mut stored = Stored::default();
    for row in prepared(query).load::<StoredRow>(&mut conn).await? {
        let digest = |bytes: Option<Vec<u8>>| {
            bytes.as_deref().map(Digest::try_from).transpose().map_err(unreadable)
        };
        match (row.kind, row.updated_at, digest(row.digest)?, digest(row.parent_digest)?) {
            (ORDER, Some(updated_at), Some(digest), _) => {
                let key = at(orders, row.position)?;
                stored.orders.insert(key, OrderVersion { updated_at, digest });
            }
            (REFUND, _, Some(digest), Some(order_digest)) => {
                let version = RefundVersion { order_digest, digest };
                stored.refunds.insert(at(refunds, row.position)?, version);
            }
            (REFUND_LINE, _, _, Some(refund_digest)) => {
                stored.refund_lines.insert(at(refund_lines, row.position)?, refund_digest);
            }
            (kind, ..) => {
                let case = format!("a stored row of kind {kind} has no digest");
                return Err(DatabaseError::Internal(case));
            }
        }
    }
    Ok(stored)
}

/// The key at a position, which starts at 1.
pub(super) fn at<'a>(keys: &[Key<'a>], position: i64) -> Result<Key<'a>, DatabaseError> {
    let key = usize::try_from(position - 1).ok().and_then(|index| keys.get(index)).copied();
    key.ok_or_else(|| DatabaseError::Internal(format!("key {position} was not requested")))
}
