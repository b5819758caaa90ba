//! Orders and returns whose shopper was erased.
//!
//! An erasure and a report that names one of its orders wait for each other: the erasure then either sees the report,
//! or the report sees the erasure.

use std::collections::{BTreeSet, HashSet};

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::batching::Processing;
use platform::database::{DatabaseError, NameLock, prepared, sql};

use crate::record_keys::OrderKey;

const ERASURE: NameLock = NameLock::new(i32::from_be_bytes(*b"\0era"));

fn name((merchant, identifier): &OrderKey) -> String {
    format!("{merchant}/{identifier}")
}

/// Waits for reports that name these orders, and makes later ones wait.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    orders: &BTreeSet<OrderKey>,
) -> Result<(), DatabaseError> {
    let names: Vec<_> = orders.iter().map(name).collect();
    ERASURE.exclude(conn, &names).await
}

/// Waits for erasures of these orders. In a batch, returns false instead if an erasure runs.
pub(crate) async fn wait(
    conn: &mut AsyncPgConnection,
    orders: &BTreeSet<OrderKey>,
    processing: Processing,
) -> Result<bool, DatabaseError> {
    let names: Vec<_> = orders.iter().map(name).collect();
    match processing {
        Processing::Batch => ERASURE.try_share(conn, &names).await,
        Processing::Alone => {
            ERASURE.share(conn, &names).await?;
            Ok(true)
        }
    }
}

/// Records that reports from before a time are erased.
pub(crate) async fn add(
    conn: &mut AsyncPgConnection,
    orders: &BTreeSet<OrderKey>,
    erased_at: Timestamp,
) -> Result<(), DatabaseError> {
    let (merchants, identifiers) = columns(orders);
    let statement = sql(
        "INSERT INTO erased_orders AS stored (merchant, identifier, erased_at) \
         SELECT merchant, identifier, $3 FROM unnest($1, $2) AS new (merchant, identifier) \
         ON CONFLICT ON CONSTRAINT erased_orders_pkey DO UPDATE \
         SET erased_at = greatest(stored.erased_at, excluded.erased_at)",
        (merchants, identifiers, erased_at),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

fn columns(orders: &BTreeSet<OrderKey>) -> (Vec<&str>, Vec<&str>) {
    orders.iter().map(|(merchant, identifier)| (merchant.as_str(), identifier.as_str())).unzip()
}

platform::rows! {
    struct Row {
        merchant: String,
        identifier: String,
        erased_at: Timestamp,
    }
}

/// The erased ones of some orders.
pub(crate) struct ErasedOrders(Vec<Row>);

impl ErasedOrders {
    pub(crate) async fn find(
        conn: &mut AsyncPgConnection,
        orders: &BTreeSet<OrderKey>,
    ) -> Result<Self, DatabaseError> {
        if orders.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let (merchants, identifiers) = columns(orders);
        let query = sql(include_str!("find_erased_orders.sql"), (merchants, identifiers));
        Ok(Self(prepared(query).load(conn).await?))
    }

    /// The merchant's orders that were erased after a report of this time.
    pub(crate) fn after(&self, merchant: &MerchantId, at: Timestamp) -> HashSet<&str> {
        let is_later = |row: &&Row| row.merchant == merchant.as_str() && at < row.erased_at;
        self.0.iter().filter(is_later).map(|row| row.identifier.as_str()).collect()
    }
}
