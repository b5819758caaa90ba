//! Who did what; written in the transaction that does it, never changed.

use chrono::{DateTime, Utc};
use diesel::{ExpressionMethods as _, QueryDsl as _, Queryable};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{error::Error, schema::audit_records};

/// One entry of the record.
#[derive(Debug, Serialize, Queryable, ToSchema)]
pub(crate) struct AuditRecord {
    pub(crate) position: i64,
    pub(crate) at: DateTime<Utc>,
    /// The client that did it.
    pub(crate) actor: String,
    #[schema(example = "merchant.changed")]
    pub(crate) action: String,
    #[schema(example = "merchant/acme")]
    pub(crate) subject: String,
    pub(crate) merchant: Option<String>,
    /// What was asked for, without secrets.
    pub(crate) detail: Value,
}

/// What is about to be recorded.
pub(crate) struct Entry<'a> {
    pub(crate) actor: &'a str,
    pub(crate) action: &'static str,
    pub(crate) subject: String,
    pub(crate) merchant: Option<&'a MerchantId>,
    pub(crate) detail: Value,
}

pub(crate) async fn write(
    conn: &mut AsyncPgConnection,
    entry: Entry<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let row = (
        audit_records::at.eq(now),
        audit_records::actor.eq(entry.actor),
        audit_records::action.eq(entry.action),
        audit_records::subject.eq(entry.subject),
        audit_records::merchant.eq(entry.merchant.map(MerchantId::as_str)),
        audit_records::detail.eq(entry.detail),
    );
    diesel::insert_into(audit_records::table).values(row).execute(conn).await?;
    Ok(())
}

/// The newest entries before a position, of one merchant or of all.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    before: i64,
    limit: i64,
) -> Result<Vec<AuditRecord>, Error> {
    use audit_records as table;
    let mut query = table::table
        .filter(table::position.lt(before))
        .order(table::position.desc())
        .limit(limit)
        .into_boxed();
    if let Some(merchant) = merchant {
        query = query.filter(table::merchant.eq(merchant));
    }
    Ok(query.load(conn).await?)
}
