//! Resets the time of a stored snapshot.

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::sql;

platform::rows! {
    /// The stored snapshot of an order, with its times.
    pub(crate) struct LockedOrder {
        pub(crate) created_at: Timestamp,
        pub(crate) updated_at: Timestamp,
        pub(crate) received_at: Timestamp,
        pub(crate) document: String,
    }
}

/// A reset for the record.
pub(crate) struct OrderReset<'a> {
    pub(crate) actor: &'a str,
    pub(crate) previous_updated_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) at: Timestamp,
}

/// Locks an order until the transaction ends. Events that are appended after this have later sequence
/// numbers than the events of earlier snapshots.
pub(crate) async fn lock_order(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifier: &str,
) -> QueryResult<Option<LockedOrder>> {
    let query = sql(
        "SELECT created_at, updated_at, received_at, document FROM orders \
         WHERE merchant = $1 AND identifier = $2 FOR UPDATE",
        (merchant.as_str(), identifier),
    );
    query.get_result(conn).await.optional()
}

/// Sets `updated_at` of a locked order and records the reset.
pub(crate) async fn reset_order(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    identifier: &str,
    reset: &OrderReset<'_>,
) -> QueryResult<()> {
    sql(
        "UPDATE orders SET updated_at = $3 WHERE merchant = $1 AND identifier = $2",
        (merchant.as_str(), identifier, reset.updated_at),
    )
    .execute(conn)
    .await?;
    let record = sql(
        "INSERT INTO order_resets (merchant, identifier, actor, previous_updated_at, reset_at) \
         VALUES ($1, $2, $3, $4, $5)",
        (merchant.as_str(), identifier, reset.actor, reset.previous_updated_at, reset.at),
    );
    record.execute(conn).await?;
    Ok(())
}
