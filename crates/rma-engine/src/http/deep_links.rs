//! `/v1/deep_links`: links and gift codes with which shoppers reach one order without a look-up.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, web};
use domain::access::Scope;
use domain::json::{Object, integer, object, read_fields, text};
use platform::Problem;
use platform::http::{ErrorBody, Json, Query, Sequential};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{merchant_of, readable_merchant, reject_portal};
use crate::App;
use crate::shoppers::deep_links::{self, DeepLink, NewDeepLink, RecordedLink, RecordedLinks};

/// Create a deep link to an order
///
/// For the merchant's own e-mails: the shopper starts a return without a look-up. Each request returns
/// another link, and all of them work until they expire or are revoked. For a gift the response also has the
/// gift code, which is the same each time.
#[utoipa::path(
    tag = "shoppers", security(("bearer" = ["returns"]), ("bearer" = ["operator"])),
    request_body(content = NewDeepLink, example = json!({ "order_identifier": "A-1001", "is_gift": false, "valid_days": 90 })),
    params(("X-Service-Id" = Option<String>, Header)),
    responses(
        (status = 201, description = "The link", body = DeepLink),
        (status = 404, description = "No such order of this merchant", body = ErrorBody),
    ),
)]
#[post("/v1/deep_links")]
pub(crate) async fn create_deep_link(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    reject_portal(&caller)?;
    let new = body.read(object(read)).await?;
    let link = deep_links::create(&app, &merchant, caller.actor(), &new).await?;
    Ok(HttpResponse::build(StatusCode::CREATED).json(link))
}

/// The order whose deep links are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeepLinkQuery {
    order_identifier: String,
}

/// List the deep links of an order
///
/// Shows who made each link and until when it works. The links themselves are not stored. Expired links are
/// listed for 90 days.
#[utoipa::path(
    tag = "shoppers", security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["operator"])),
    params(DeepLinkQuery, ("X-Service-Id" = Option<String>, Header)),
    responses((status = 200, body = RecordedLinks)),
)]
#[get("/v1/deep_links")]
pub(crate) async fn list_deep_links(
    app: web::Data<App>,
    caller: Caller,
    query: Query<DeepLinkQuery>,
) -> Result<web::Json<RecordedLinks>, Problem> {
    let merchant = readable_merchant(&app, &caller)?;
    reject_portal(&caller)?;
    Ok(web::Json(deep_links::list(&app, &merchant, &query.order_identifier).await?))
}

/// Revoke a deep link
///
/// The link opens nothing from now on. Proofs that it opened before work until they expire, for up to half
/// an hour. A gift code of the order keeps working.
#[utoipa::path(
    tag = "shoppers", security(("bearer" = ["returns"]), ("bearer" = ["operator"])),
    params(("id" = Uuid, Path), ("X-Service-Id" = Option<String>, Header)),
    responses(
        (status = 200, description = "The record of the link; revoking again changes nothing", body = RecordedLink),
    ),
)]
#[post("/v1/deep_links/{id}/revoke")]
pub(crate) async fn revoke_deep_link(
    app: web::Data<App>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<web::Json<RecordedLink>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    reject_portal(&caller)?;
    Ok(web::Json(deep_links::revoke(&app, &merchant, caller.actor(), *id).await?))
}

pub(crate) fn read(body: &Object<'_>) -> Option<NewDeepLink> {
    let valid_days = body.optional("valid_days", integer(1..=730));
    read_fields!(body => NewDeepLink {
        order_identifier: body.required("order_identifier", text(1..=255)),
        is_gift: body.flag("is_gift"),
        valid_days: valid_days.map(|days| days.unwrap_or(90)),
    })
}
