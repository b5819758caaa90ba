//! Audit records, which are never changed.

use diesel::{
    ExpressionMethods as _, QueryDsl as _,
    dsl::sql,
    sql_types::{BigInt, Bool},
};
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

/// Conditions on audit records; all that are set must match.
#[derive(Debug, Default)]
pub(crate) struct AuditFilter<'a> {
    pub(crate) merchant: Option<&'a str>,
    pub(crate) actor: Option<&'a str>,
    pub(crate) action: Option<&'a str>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

/// Records that come after one in the order of the list.
const AFTER: &str = "(created_at, id) < ((SELECT created_at FROM audit_records WHERE id = ";

/// The newest records that match and come after the record `after`.
pub(crate) async fn page(
    conn: &mut AsyncPgConnection,
    filter: &AuditFilter<'_>,
    after: Option<i64>,
    limit: i64,
) -> Result<Vec<AuditRecord>, Error> {
    let mut query = audit_records::table
        .order((audit_records::created_at.desc(), audit_records::id.desc()))
        .limit(limit)
        .into_boxed();
    if let Some(after) = after {
        let is_older = sql::<Bool>(AFTER).bind::<BigInt, _>(after).sql("), ");
        query = query.filter(is_older.bind::<BigInt, _>(after).sql(")"));
    }
    if let Some(merchant) = filter.merchant {
        query = query.filter(audit_records::merchant.eq(merchant));
    }
    if let Some(actor) = filter.actor {
        query = query.filter(audit_records::actor.eq(actor));
    }
    if let Some(action) = filter.action {
        query = query.filter(audit_records::action.eq(action));
    }
    if let Some(from) = filter.from {
        query = query.filter(audit_records::created_at.ge(from));
    }
    if let Some(to) = filter.to {
        query = query.filter(audit_records::created_at.lt(to));
    }
    Ok(query.load(conn).await?)
}
