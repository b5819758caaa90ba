//! The audit log, for operators and for the merchant that the records concern.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, Datelike as _, Utc};
use platform::{
    Problem,
    http::{ErrorBody, PageLimit, Query},
    identity::Caller,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{listed_merchant, require_read};
use crate::{
    App,
    audit::{AuditPage, AuditRecord, AuditRecordView},
    error::Error,
    store::{
        audit::{self, AuditFilter},
        clients,
    },
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Only records of this merchant
    merchant: Option<String>,
    /// Only changes by this client or person: a client id or an e-mail address
    actor: Option<String>,
    /// Only changes of this type, for example `endpoint.set`
    action: Option<String>,
    /// Only records of this time or later
    from: Option<DateTime<Utc>>,
    /// Only records before this time
    to: Option<DateTime<Utc>>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<i64>,
}

impl AuditQuery {
    /// Rejects values that PostgreSQL cannot compare.
    fn check(&self) -> Result<(), Error> {
        for (name, text) in
            [("merchant", &self.merchant), ("actor", &self.actor), ("action", &self.action)]
        {
            if text.as_ref().is_some_and(|text| text.contains('\0')) {
                return Err(Error::BadQuery(name, "must not contain NUL"));
            }
        }
        for (name, time) in [("from", self.from), ("to", self.to)] {
            if time.is_some_and(|time| !(1..=9999).contains(&time.year())) {
                return Err(Error::BadQuery(name, "must lie in the years 1 to 9999"));
            }
        }
        Ok(())
    }
}

/// List audit records
///
/// The changes of merchants, endpoints, clients and people, and sign-ins, newest first. A token of a
/// merchant gets the changes that concern this merchant. Other services keep their own records: replays,
/// and the timelines of returns.
#[utoipa::path(
    tag = "audit", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(AuditQuery),
    responses(
        (status = 200, body = AuditPage),
        (status = 404, description = "The token is for another merchant", body = ErrorBody),
    )
)]
#[get("/v1/audit")]
pub(crate) async fn list_audit_records(
    app: web::Data<App>,
    caller: Caller,
    query: Query<AuditQuery>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    let query = query.into_inner();
    query.check()?;
    let filter = AuditFilter {
        merchant: listed_merchant(&caller, query.merchant.as_deref())?,
        actor: query.actor.as_deref(),
        action: query.action.as_deref(),
        from: query.from,
        to: query.to,
    };
    let mut conn = app.pool.reader(filter.merchant).await?;
    let mut records = audit::page(&mut conn, &filter, query.after, query.limit.rows()).await?;
    let next = query.limit.next(&mut records, |record| record.id.to_string());
    let actors: Vec<&str> = records.iter().map(|record| record.actor.as_str()).collect();
    let names = clients::names(&mut conn, &actors).await?;
    let view = |record: AuditRecord| {
        let actor_name = names.get(&record.actor).cloned();
        AuditRecordView { record, actor_name }
    };
    let records = records.into_iter().map(view).collect();
    Ok(HttpResponse::Ok().json(AuditPage { records, next }))
}
