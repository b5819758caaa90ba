//! `/v1/erasures`.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, web};
use domain::access::{MerchantId, Scope};
use domain::json::object;
use platform::Problem;
use platform::http::{BadCursor, ErrorBody, Json, PageLimit, Query, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use serde::Deserialize;
use uuid::Uuid;

use crate::App;
use crate::erasure_view::{ErasureDetails, Erasures};
use crate::erasures::{self, ErasureDryRun, ErasureRequest};

/// Erase a shopper's data
///
/// Replaces names, e-mail addresses, phone numbers, addresses and notes in the orders of a shopper, in their
/// returns, exchange orders and shipments, and in the messages and events about them. Amounts, identifiers
/// and times stay. The response comes before the work; `GET /v1/erasures/{id}` shows which services have
/// confirmed. The data of open returns is kept unless `force` is true. Repeating an erasure does no harm; with the
/// same `Idempotency-Key` it is the same erasure.
#[utoipa::path(
    tag = "erasures",
    params(("X-Service-Id" = Option<String>, Header), ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = ErasureRequest, example = json!({ "email": "ada@shopper.example" })),
    responses(
        (status = 200, description = "Result of a dry run", body = ErasureDryRun),
        (status = 202, description = "The data is being erased", body = ErasureDetails),
        (status = 404, description = "The merchant does not exist, or a named order is not the shopper's", body = ErrorBody),
        (status = 409, description = "The shopper has more than 10,000 orders", body = ErrorBody),
    ),
    security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
)]
#[post("/v1/erasures")]
pub(crate) async fn erase_shopper(
    app: web::Data<App>,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    caller.require_any(&[Scope::Manage, Scope::Operator])?;
    let merchant = &app.merchants.merchant_for(&caller)?.identifier;
    let request = body.read(object(ErasureRequest::read)).await?;
    if request.dry_run {
        return Ok(HttpResponse::Ok().json(erasures::dry_run(&app, merchant, &request).await?));
    }
    let actor = caller.actor();
    let erasure = erasures::request(&app, merchant, &header, &request, actor).await?;
    Ok(json_response(StatusCode::ACCEPTED, erasure))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErasureQuery {
    /// Only erasures of this merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// List erasures
///
/// The record of who erased shoppers' data. It contains no personal data. A token of a merchant finds the
/// merchant's erasures.
#[utoipa::path(
    tag = "erasures",
    params(ErasureQuery, ("X-Service-Id" = Option<String>, Header)),
    responses((status = 200, description = "Erasures", body = Erasures)),
    security(("bearer" = ["manage"]), ("bearer" = ["read"]), ("bearer" = ["operator"])),
)]
#[get("/v1/erasures")]
pub(crate) async fn list_erasures(
    app: web::Data<App>,
    caller: Caller,
    query: Query<ErasureQuery>,
) -> Result<web::Json<Erasures>, Problem> {
    caller.require_any(&[Scope::Manage, Scope::Read, Scope::Operator])?;
    let merchant = app.merchants.listed_for(&caller, query.merchant.as_ref())?;
    let after: Option<Result<Uuid, _>> = query.after.as_deref().map(str::parse);
    let after = after.transpose().map_err(|_invalid| BadCursor)?;
    Ok(web::Json(erasures::list(&app, merchant.as_ref(), after, query.limit).await?))
}

/// Show an erasure
///
/// Its progress, the services that have confirmed it, and the open returns whose data was kept.
#[utoipa::path(
    tag = "erasures",
    params(
        ("id" = Uuid, Path, description = "The id of the erasure"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, description = "The erasure", body = ErasureDetails)),
    security(("bearer" = ["manage"]), ("bearer" = ["read"]), ("bearer" = ["operator"])),
)]
#[get("/v1/erasures/{id}")]
pub(crate) async fn show_erasure(
    app: web::Data<App>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<web::Json<ErasureDetails>, Problem> {
    caller.require_any(&[Scope::Manage, Scope::Read, Scope::Operator])?;
    let merchant = app.merchants.listed_for(&caller, None)?;
    Ok(web::Json(erasures::show(&app, merchant.as_ref(), *id).await?))
}
