//! The audit log, for operators and for the merchant that the records concern.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use platform::{
    Problem,
    http::{ErrorBody, PageLimit},
    identity::Caller,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{listed_merchant, require_read};
use crate::{App, audit::AuditPage, store::audit};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Only records of this merchant
    merchant: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<i64>,
}

/// List audit records
///
/// The changes that people and clients made, newest first. A token of a merchant gets the changes that
/// concern this merchant.
#[utoipa::path(
    tag = "audit", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(AuditQuery),
    responses(
        (status = 200, body = AuditPage), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, description = "The token is for another merchant", body = ErrorBody),
    )
)]
#[get("/v1/audit")]
pub(crate) async fn list_audit_records(
    app: web::Data<App>,
    caller: Caller,
    query: web::Query<AuditQuery>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    let AuditQuery { merchant, limit, after } = query.into_inner();
    let merchant = listed_merchant(&caller, merchant.as_deref())?;
    let before = after.unwrap_or(i64::MAX);
    let mut conn = app.pool.get().await?;
    let mut records = audit::page(&mut conn, merchant, before, limit.rows()).await?;
    let next = limit.next(&mut records, |record| record.id.to_string());
    Ok(HttpResponse::Ok().json(AuditPage { records, next }))
}
