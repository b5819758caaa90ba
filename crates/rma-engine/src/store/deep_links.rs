//! The records of deep links.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};
use uuid::Uuid;

/// The longest list of the links of an order.
const MAX_LISTED: i64 = 100;

platform::rows! {
    /// The record of a deep link.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct LinkRecord {
        pub(crate) id: Uuid,
        pub(crate) order_identifier: String,
        pub(crate) is_gift: bool,
        pub(crate) created_by: String,
        pub(crate) created_at: Timestamp,
        pub(crate) expires_at: Timestamp,
        pub(crate) revoked_by: Option<String>,
        pub(crate) revoked_at: Option<Timestamp>,
    }
}

const COLUMNS: &str = "id, order_identifier, is_gift, created_by, created_at, expires_at, \
                       revoked_by, revoked_at";

pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    link: &LinkRecord,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "INSERT INTO deep_links (id, merchant, order_identifier, is_gift, created_by, created_at, \
             expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        (
            link.id,
            merchant.as_str(),
            &link.order_identifier,
            link.is_gift,
            &link.created_by,
            link.created_at,
            link.expires_at,
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// The latest links of an order, newest first.
pub(crate) async fn list(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order_identifier: &str,
) -> Result<Vec<LinkRecord>, DatabaseError> {
    let query = sql(
        format!(
            "SELECT {COLUMNS} FROM deep_links WHERE merchant = $1 AND order_identifier = $2 \
         ORDER BY created_at DESC LIMIT $3",
        ),
        (merchant.as_str(), order_identifier, MAX_LISTED),
    );
    Ok(prepared(query).get_results(conn).await?)
}

/// Revokes a link. A link that was revoked before keeps its record.
pub(crate) async fn revoke(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
    actor: &str,
    now: Timestamp,
) -> Result<Option<LinkRecord>, DatabaseError> {
    let statement = sql(
        format!(
            "UPDATE deep_links SET revoked_by = coalesce(revoked_by, $3), \
             revoked_at = coalesce(revoked_at, $4) \
         WHERE merchant = $1 AND id = $2 RETURNING {COLUMNS}",
        ),
        (merchant.as_str(), id, actor, now),
    );
    let rows: Vec<LinkRecord> = prepared(statement).get_results(conn).await?;
    Ok(rows.into_iter().next())
}

/// Whether a link is recorded and not revoked.
pub(crate) async fn is_valid(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
) -> Result<bool, DatabaseError> {
    let query = sql(
        "SELECT FROM deep_links WHERE merchant = $1 AND id = $2 AND revoked_at IS NULL",
        (merchant.as_str(), id),
    );
    Ok(prepared(query).execute(conn).await? > 0)
}
