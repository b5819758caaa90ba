//! The daily search for orders whose retention ended.

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};

platform::rows! {
    /// The position of the search.
    pub(crate) struct Scan {
        pub(crate) merchant: String,
        pub(crate) identifier: String,
        pub(crate) finished_at: Option<Timestamp>,
    }
}

/// Locks the position until the end of the transaction; `None` if another replica searches.
pub(crate) async fn lock_scan(conn: &mut AsyncPgConnection) -> Result<Option<Scan>, DatabaseError> {
    let insert =
        diesel::sql_query("INSERT INTO retention_scan DEFAULT VALUES ON CONFLICT DO NOTHING");
    prepared(insert).execute(conn).await?;
    let query = diesel::sql_query(
        "SELECT merchant, identifier, finished_at FROM retention_scan FOR UPDATE SKIP LOCKED",
    );
    Ok(prepared(query).get_result(conn).await.optional()?)
}

platform::rows! {
    /// An order, and whether its retention ended and its data is not erased yet.
    pub(crate) struct OrderAge {
        pub(crate) merchant: String,
        pub(crate) identifier: String,
        pub(crate) is_expired: bool,
    }
}

/// The next orders after the position.
pub(crate) async fn order_ages(
    conn: &mut AsyncPgConnection,
    after: &Scan,
    changed_before: Timestamp,
    limit: i64,
) -> Result<Vec<OrderAge>, DatabaseError> {
    let query = sql(
        "SELECT merchant, identifier, updated_at < $3 AND erased_at IS NULL AS is_expired \
         FROM orders WHERE (merchant, identifier) > ($1, $2) \
         ORDER BY merchant, identifier LIMIT $4",
        (&after.merchant, &after.identifier, changed_before, limit),
    );
    Ok(prepared(query).load(conn).await?)
}

/// Moves the position behind an order, or back to the start if the search is finished.
pub(crate) async fn advance_scan(
    conn: &mut AsyncPgConnection,
    last: Option<&OrderAge>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let (merchant, identifier) =
        last.map_or(("", ""), |last| (last.merchant.as_str(), last.identifier.as_str()));
    let statement = sql(
        "UPDATE retention_scan SET merchant = $1, identifier = $2, \
             finished_at = coalesce($3, finished_at)",
        (merchant, identifier, last.is_none().then_some(now)),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
