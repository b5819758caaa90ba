//! Returns that the refunds of several orders may affect: locked at once, loaded in chunks.

use diesel::sql_types::{Array, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::returns::Rma;
use platform::database::{DatabaseError, prepared};

use super::orders::Key;
use super::{DocumentRow, read};

/// A locked return and its size in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Locked {
    pub(crate) merchant: String,
    pub(crate) rma_identifier: String,
    pub(crate) weight: usize,
}

platform::rows! {
    struct LockedRow {
        merchant: String,
        rma_identifier: String,
        weight: i32,
    }
}

/// Locks the returns that hold units of these orders, and the named returns, in key order. See
/// [`held`](super::units::held) for `OFFSET 0`.
pub(crate) async fn lock_affected(
    conn: &mut AsyncPgConnection,
    orders: &[Key<'_>],
    named: &[Key<'_>],
) -> Result<Vec<Locked>, DatabaseError> {
    let (order_merchants, orders): (Vec<_>, Vec<_>) = orders.iter().copied().unzip();
    let (named_merchants, named): (Vec<_>, Vec<_>) = named.iter().copied().unzip();
    let query = diesel::sql_query(
        "WITH affected (merchant, rma_identifier) AS ( \
             SELECT units.* FROM unnest($1, $2) AS requested (merchant, order_identifier), LATERAL ( \
                 SELECT merchant, rma_identifier FROM return_units AS own \
                 WHERE own.merchant = requested.merchant \
                 AND own.order_identifier = requested.order_identifier AND held OFFSET 0 \
             ) AS units \
             UNION SELECT * FROM unnest($3, $4) \
         ), sorted AS ( \
             SELECT * FROM affected ORDER BY merchant, rma_identifier \
         ) \
         SELECT stored.* FROM sorted, LATERAL ( \
             SELECT merchant, rma_identifier, octet_length(document) AS weight \
             FROM returns AS own \
             WHERE own.merchant = sorted.merchant AND own.rma_identifier = sorted.rma_identifier \
             FOR NO KEY UPDATE \
         ) AS stored",
    )
    .bind::<Array<Text>, _>(order_merchants)
    .bind::<Array<Text>, _>(orders)
    .bind::<Array<Text>, _>(named_merchants)
    .bind::<Array<Text>, _>(named);
    let rows: Vec<LockedRow> = prepared(query).load(conn).await?;
    let locked = |LockedRow { merchant, rma_identifier, weight }| {
        let weight = usize::try_from(weight).unwrap_or_default();
        Locked { merchant, rma_identifier, weight }
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
    let query = diesel::sql_query(
        "SELECT stored.document FROM unnest($1, $2) WITH ORDINALITY \
             AS requested (merchant, rma_identifier, place), LATERAL ( \
             SELECT document FROM returns AS own \
             WHERE own.merchant = requested.merchant AND own.rma_identifier = requested.rma_identifier \
             OFFSET 0 \
         ) AS stored ORDER BY requested.place",
    )
    .bind::<Array<Text>, _>(merchants)
    .bind::<Array<Text>, _>(identifiers);
    let rows: Vec<DocumentRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| read(&row.document)).collect()
}
