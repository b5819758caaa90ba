//! Orders that other transactions have locked.

use std::collections::HashSet;

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::database::{DatabaseError, prepared, sql};

use crate::write_batch::Key;

platform::rows! { struct PositionRow { position: i64 } }

/// Which of these orders other transactions have locked.
pub(crate) async fn locked_orders<'a>(
    mut conn: &AsyncPgConnection,
    orders: &[Key<'a>],
) -> Result<HashSet<Key<'a>>, DatabaseError> {
    let (merchants, identifiers): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let query = sql(include_str!("locked_orders.sql"), (merchants, identifiers));
    let rows: Vec<PositionRow> = prepared(query).load(&mut conn).await?;
    rows.into_iter().map(|row| super::load_stored::at(orders, row.position)).collect()
}

/// Locks those of the orders that exist, until the end of the transaction.
pub(crate) async fn lock_orders(
    conn: &mut AsyncPgConnection,
    orders: &[Key<'_>],
) -> Result<(), DatabaseError> {
    let (merchants, identifiers): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let lock = "SELECT 1 FROM orders WHERE (merchant, identifier) IN (SELECT * FROM unnest($1, $2)) \
                ORDER BY merchant, identifier FOR NO KEY UPDATE";
    prepared(sql(lock, (merchants, identifiers))).execute(conn).await?;
    Ok(())
}
