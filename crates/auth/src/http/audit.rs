//! The record of changes, for operators.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, web};
use platform::{
    Problem,
    http::{ErrorBody, PageLimit},
    identity::Caller,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::operator;
use crate::{
    App,
    store::audit::{self, AuditRecord},
};

/// Which entries, newest first.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Only this merchant's.
    merchant: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<i64>,
}

/// Some entries.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    records: Vec<AuditRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Who did what
#[utoipa::path(
    tag = "audit", security(("bearer" = [])), params(AuditQuery),
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
    operator(&caller)?;
    let AuditQuery { merchant, limit, after } = query.into_inner();
    let before = after.unwrap_or(i64::MAX);
    let mut conn = app.pool.get().await?;
    let mut records = audit::page(&mut conn, merchant.as_deref(), before, limit.rows()).await?;
    let next = limit.next(&mut records, |record| record.position.to_string());
    Ok(HttpResponse::Ok().json(AuditPage { records, next }))
}
