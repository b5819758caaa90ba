//! Orders and their shipped units.
//!
//! A transaction that depends on an order's units locks the order's row first, and locks orders
//! before returns. Snapshots and returns of the same order are therefore serialized.

use std::collections::{BTreeSet, HashMap};

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::order::Order;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};

use super::{MAX_REQUEST_BATCH_BYTES, read, write};
use crate::shipped_units::ShippedUnits;

/// A merchant and an identifier in its systems.
pub(crate) type ResourceKey<'a> = (&'a str, &'a str);

/// Sorts the snapshots of an order: by `updated_at`, then by the sequence number of the event at
/// order-intake. The larger one is newer.
pub(crate) type SnapshotVersion = (Timestamp, i64);

/// The stored state that a new snapshot is compared with.
#[derive(Debug, Clone)]
pub(crate) struct StoredOrder {
    pub(crate) version: SnapshotVersion,
    /// Time of the first event about the order.
    pub(crate) stored_at: Timestamp,
    pub(crate) shipped_units: ShippedUnits,
}

/// A stored order with its shipped units.
#[derive(Debug, Clone)]
pub(crate) struct Projected {
    pub(crate) order: Order,
    /// Sequence number of the event with the snapshot.
    pub(crate) sequence: i64,
    pub(crate) shipped_units: ShippedUnits,
    /// Time of the first event about the order.
    pub(crate) stored_at: Timestamp,
    /// The original order of an exchange order.
    pub(crate) original_order_identifier: Option<String>,
    /// Stored size in bytes.
    pub(crate) bytes: usize,
}

platform::rows! {
    struct StoredRow {
        place: i64,
        updated_at: Timestamp,
        sequence: i64,
        stored_at: Timestamp,
        /// `NULL` if the stored units are too large together.
        shipped_units: Option<String>,
    }
}

/// Locks these orders. Returns `None` if their units have more than `most` bytes together. Keys must be sorted, because rows are locked in that order and another order
/// could deadlock. The query uses `LATERAL`: with a join, a plan that was made while the table was
/// empty would read the whole table.
pub(crate) async fn lock_stored<'a>(
    conn: &mut AsyncPgConnection,
    keys: &[ResourceKey<'a>],
    most: usize,
) -> Result<Option<HashMap<ResourceKey<'a>, StoredOrder>>, DatabaseError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = sql(include_str!("lock_stored_orders.sql"), (merchants, identifiers, most));
    let rows: Vec<StoredRow> = prepared(query).load(conn).await?;
    let mut stored = HashMap::with_capacity(rows.len());
    for row in rows {
        let Some(shipped_units) = row.shipped_units else { return Ok(None) };
        let place = usize::try_from(row.place - 1).unwrap_or(usize::MAX);
        if let Some(key) = keys.get(place) {
            let version = (row.updated_at, row.sequence);
            let stored_at = row.stored_at;
            let shipped_units = read(&shipped_units)?;
            stored.insert(*key, StoredOrder { version, stored_at, shipped_units });
        }
    }
    Ok(Some(stored))
}

/// Replaces the units of a locked order, and the time of its first event. The snapshot stays.
pub(crate) async fn update_units(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifier: &str,
    shipped_units: &ShippedUnits,
    stored_at: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE orders SET shipped_units = $3, stored_at = $4 \
         WHERE merchant = $1 AND identifier = $2",
        (merchant.as_str(), identifier, write(shipped_units)?, stored_at),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Whether the merchant has the order.
pub(crate) async fn exists(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifier: &str,
) -> Result<bool, DatabaseError> {
    let query = sql(
        "SELECT 1 FROM orders WHERE merchant = $1 AND identifier = $2",
        (merchant.as_str(), identifier),
    );
    Ok(prepared(query).execute(conn).await? > 0)
}

/// Lock on the rows that a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLock {
    None,
    /// Held until the end of the transaction.
    Update,
    /// As `Update`, for a batch: rows that another transaction has locked are skipped, and so are all rows if they
    /// have more than [`MAX_REQUEST_BATCH_BYTES`] together.
    UpdateOrSkip,
}

platform::rows! {
    /// A stored order that is not parsed yet.
    pub(crate) struct UnparsedOrder {
        merchant: String,
        document: String,
        sequence: i64,
        shipped_units: String,
        stored_at: Timestamp,
        original_order_identifier: Option<String>,
    }

    /// The stored size of an order.
    pub(crate) struct OrderSize {
        pub(crate) identifier: String,
        pub(crate) bytes: i64,
    }
}

impl UnparsedOrder {
    /// The order with its merchant.
    pub(crate) fn parse(self) -> Result<(String, Projected), DatabaseError> {
        let projected = Projected {
            order: read(&self.document)?,
            sequence: self.sequence,
            shipped_units: read(&self.shipped_units)?,
            stored_at: self.stored_at,
            original_order_identifier: self.original_order_identifier,
            bytes: self.document.len() + self.shipped_units.len(),
        };
        Ok((self.merchant, projected))
    }
}

/// Finds orders with their merchants. Leaves out unknown ones; with [`RowLock::UpdateOrSkip`] also locked ones,
/// and all if together they exceed [`MAX_REQUEST_BATCH_BYTES`]. For `OFFSET 0` see
/// [`held`](super::units::held). `(SELECT $1)` hides the length of the arrays from the planner, which keeps the plan.
pub(crate) async fn find(
    conn: &AsyncPgConnection,
    keys: &BTreeSet<ResourceKey<'_>>,
    row_lock: RowLock,
) -> Result<Vec<(String, Projected)>, DatabaseError> {
    let found = find_unparsed(conn, keys, row_lock).await?;
    found.into_iter().map(UnparsedOrder::parse).collect()
}

/// As [`find`], for a caller that parses many orders outside of the HTTP workers.
pub(crate) async fn find_unparsed(
    mut conn: &AsyncPgConnection,
    keys: &BTreeSet<ResourceKey<'_>>,
    row_lock: RowLock,
) -> Result<Vec<UnparsedOrder>, DatabaseError> {
    let (lock, max_bytes) = match row_lock {
        RowLock::None => ("OFFSET 0", i64::MAX),
        RowLock::Update => ("FOR NO KEY UPDATE", i64::MAX),
        RowLock::UpdateOrSkip => (
            "FOR NO KEY UPDATE SKIP LOCKED",
            i64::try_from(MAX_REQUEST_BATCH_BYTES).unwrap_or(i64::MAX),
        ),
    };
    let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
    let query = sql(
        format!(include_str!("find_orders.sql"), lock = lock),
        (merchants, identifiers, max_bytes),
    );
    Ok(prepared(query).load(&mut conn).await?)
}

/// The sizes of a merchant's orders, without unknown ones. For `OFFSET 0` and `(SELECT $2)` see [`find`].
pub(crate) async fn sizes(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifiers: &[&str],
) -> Result<Vec<OrderSize>, DatabaseError> {
    let query = sql(
        "SELECT stored.identifier, stored.bytes \
         FROM unnest((SELECT $2)) AS requested (identifier), LATERAL ( \
             SELECT identifier, \
                 (octet_length(document) + octet_length(shipped_units))::bigint AS bytes \
             FROM orders WHERE merchant = $1 AND orders.identifier = requested.identifier OFFSET 0 \
         ) AS stored",
        (merchant.as_str(), identifiers.to_vec()),
    );
    Ok(prepared(query).load(conn).await?)
}
