//! Audit records, which are never changed.

use diesel::{ExpressionMethods as _, QueryDsl as _};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;

use crate::{
    audit::{AuditRecord, NewAuditRecord},
    error::Error,
    schema::audit_records,
};

pub(crate) async fn insert(
    conn: &mut AsyncPgConnection,
    record: NewAuditRecord<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let row = (
        audit_records::created_at.eq(now),
        audit_records::actor.eq(record.actor),
        audit_records::action.eq(record.action),
        audit_records::subject.eq(record.subject),
        audit_records::merchant.eq(record.merchant.map(MerchantId::as_str)),
        audit_records::detail.eq(record.detail),
    );
    diesel::insert_into(audit_records::table).values(row).execute(conn).await?;
    Ok(())
}

/// The newest records with an id below `before`, of one merchant or of all.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    before: i64,
    limit: i64,
) -> Result<Vec<AuditRecord>, Error> {
    let mut query = audit_records::table
        .filter(audit_records::id.lt(before))
        .order(audit_records::id.desc())
        .limit(limit)
        .into_boxed();
    if let Some(merchant) = merchant {
        query = query.filter(audit_records::merchant.eq(merchant));
    }
    Ok(query.load(conn).await?)
}
