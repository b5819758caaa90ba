//! Orders whose shopper was erased.
//!
//! An erasure and a projection of the same order wait for each other, also while the order is not stored: the
//! erasure then either sees the order, or the projection sees the erasure.

use std::collections::HashMap;

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::database::{DatabaseError, NameLock, prepared, sql};

use super::orders::ResourceKey;

const ERASURE: NameLock = NameLock::new(i32::from_be_bytes(*b"\0era"));

fn name((merchant, identifier): ResourceKey<'_>) -> String {
    format!("{merchant}/{identifier}")
}

/// Waits for projections of these orders, and makes later ones wait.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[String],
) -> Result<(), DatabaseError> {
    let names: Vec<_> = identifiers.iter().map(|it| name((merchant.as_str(), it))).collect();
    ERASURE.exclude(conn, &names).await
}

/// Records that the snapshots before the event with this sequence number are erased.
pub(crate) async fn add(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[String],
    sequence: i64,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "INSERT INTO erased_orders AS stored (merchant, identifier, sequence) \
         SELECT $1, identifier, $3 FROM unnest($2) AS new (identifier) ORDER BY identifier \
         ON CONFLICT ON CONSTRAINT erased_orders_pkey DO UPDATE \
         SET sequence = greatest(stored.sequence, excluded.sequence)",
        (merchant.as_str(), identifiers, sequence),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

platform::rows! {
    struct ErasedOrderRow {
        place: i64,
        sequence: i64,
    }
}

/// The sequence numbers before which the snapshots of these orders are erased. Waits for their erasures.
pub(crate) async fn find<'a>(
    conn: &mut AsyncPgConnection,
    keys: &[ResourceKey<'a>],
) -> Result<HashMap<ResourceKey<'a>, i64>, DatabaseError> {
    let names: Vec<_> = keys.iter().map(|key| name(*key)).collect();
    ERASURE.share(conn, &names).await?;
    let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = sql(include_str!("find_erased_orders.sql"), (merchants, identifiers));
    let rows: Vec<ErasedOrderRow> = prepared(query).load(conn).await?;
    let found = rows.iter().filter_map(|row| {
        let place = usize::try_from(row.place - 1).ok()?;
        Some((*keys.get(place)?, row.sequence))
    });
    Ok(found.collect())
}
