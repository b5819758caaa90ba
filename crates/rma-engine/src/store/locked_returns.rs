//! Returns that the refunds of several orders may affect: locked at once, loaded in chunks.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::returns::Rma;
use platform::database::{DatabaseError, prepared, sql};

use super::orders::ResourceKey;
use super::{DocumentRow, read};

/// A locked return and its size in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Locked {
    pub(crate) merchant: String,
    pub(crate) rma_identifier: String,
    pub(crate) bytes: usize,
}

platform::rows! {
    struct LockedRow {
        merchant: String,
        rma_identifier: String,
        bytes: i32,
    }
}

/// Locks the returns that hold units of these orders, and the named returns, in key order. See
/// [`held`](super::units::held) for `OFFSET 0`.
pub(crate) async fn lock_affected(
    conn: &mut AsyncPgConnection,
    orders: &[ResourceKey<'_>],
    named: &[ResourceKey<'_>],
) -> Result<Vec<Locked>, DatabaseError> {
    let (order_merchants, orders): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let (named_merchants, named): (Vec<_>, Vec<_>) = named.iter().copied().unzip();
    let query = sql(
        include_str!("lock_affected_returns.sql"),
        (order_merchants, orders, named_merchants, named),
    );
    let rows: Vec<LockedRow> = prepared(query).load(conn).await?;
    let locked = |LockedRow { merchant, rma_identifier, bytes }| {
        let bytes = usize::try_from(bytes).unwrap_or_default();
        Locked { merchant, rma_identifier, bytes }
    };
    Ok(rows.into_iter().map(locked).collect())
}

/// Loads locked returns, in the given order. See [`held`](super::units::held) for `OFFSET 0`.
pub(crate) async fn load(
    conn: &mut AsyncPgConnection,
    locked: &[Locked],
) -> Result<Vec<Rma>, DatabaseError> {
    let key = |it: &Locked| (it.merchant.clone(), it.rma_identifier.clone());
    let (merchants, identifiers): (Vec<_>, Vec<_>) = locked.iter().map(key).unzip();
    let query = sql(include_str!("load_locked_returns.sql"), (merchants, identifiers));
    let rows: Vec<DocumentRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| read(&row.document)).collect()
}
