//! The audit log, for operators.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use platform::{
    Problem,
    http::{ErrorBody, PageLimit},
    identity::Caller,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::require_operator;
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
/// The changes that operators made, newest first.
#[utoipa::path(
    tag = "audit", security(("bearer" = ["operator"])), params(AuditQuery),
    responses(
        (status = 200, body = AuditPage), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/audit")]
pub(crate) async fn list_audit_records(
    app: web::Data<App>,
    caller: Caller,
    query: web::Query<AuditQuery>,
) -> Result<HttpResponse, Problem> {
    require_operator(&caller)?;
    let AuditQuery { merchant, limit, after } = query.into_inner();
    let before = after.unwrap_or(i64::MAX);
    let mut conn = app.pool.get().await?;
    let mut records = audit::page(&mut conn, merchant.as_deref(), before, limit.rows()).await?;
    let next = limit.next(&mut records, |record| record.id.to_string());
    Ok(HttpResponse::Ok().json(AuditPage { records, next }))
}
