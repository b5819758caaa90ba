//! `/v1/drop_shipments`: confirmations and cancellations of orders that a warehouse ships for a merchant.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, web};
use domain::access::MerchantId;
use domain::json::Document;
use domain::warehouse::{
    DropShipment, DropShipmentCancellation, DropShipmentConfirmation, DropShipmentKind,
    DropShipmentPartialCancellation, sample,
};
use platform::Problem;
use platform::http::{BadCursor, Json, PageLimit, Query, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::{Access, Caller};
use serde::Deserialize;

use super::{listed, warehouse};
use crate::App;
use crate::drop_shipments::{self, Accepted, DropShipmentPage};
use crate::request::{Request, read_body};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct DropShipmentQuery {
    /// Only drop shipments of this merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// Only drop shipments of this order of the merchant
    order_identifier: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// Confirm that a drop shipment left
///
/// Each shipment can be confirmed once. A shipment of a cancelled order is rejected.
#[utoipa::path(
    tag = "drop shipments", security(("bearer" = ["warehouse"])),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = DropShipmentConfirmation, example = json!(sample::confirmation("A-1001"))),
    responses((status = 201, body = Accepted))
)]
#[post("/v1/drop_shipments/confirmations")]
pub(crate) async fn confirm_drop_shipment(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    record(&app, &caller, DropShipmentKind::Confirmation, key, body).await
}

/// Cancel a drop shipment
///
/// Cancels the whole order, also if the warehouse rejected it (status `rejected`). Later confirmations
/// and cancellations of the order are not accepted.
#[utoipa::path(
    tag = "drop shipments", security(("bearer" = ["warehouse"])),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = DropShipmentCancellation, example = json!(sample::cancellation("A-1001"))),
    responses((status = 201, body = Accepted))
)]
#[post("/v1/drop_shipments/cancellations")]
pub(crate) async fn cancel_drop_shipment(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    record(&app, &caller, DropShipmentKind::Cancellation, key, body).await
}

/// Cancel some items of a drop shipment
///
/// The rest of the order can still be confirmed.
#[utoipa::path(
    tag = "drop shipments", security(("bearer" = ["warehouse"])),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = DropShipmentPartialCancellation, example = json!(sample::partial_cancellation("A-1001"))),
    responses((status = 201, body = Accepted))
)]
#[post("/v1/drop_shipments/partial_cancellations")]
pub(crate) async fn cancel_drop_shipment_partially(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    record(&app, &caller, DropShipmentKind::PartialCancellation, key, body).await
}

/// List drop shipments
///
/// The confirmations and cancellations of the merchant, or of one order, newest first. A token without a
/// merchant and with the scope `read` can list those of all merchants; an order needs its merchant in
/// `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "drop shipments",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        DropShipmentQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = DropShipmentPage))
)]
#[get("/v1/drop_shipments")]
pub(crate) async fn list_drop_shipments(
    app: web::Data<App>,
    caller: Caller,
    query: Query<DropShipmentQuery>,
) -> Result<HttpResponse, Problem> {
    let DropShipmentQuery { merchant, order_identifier: order, limit, after } = query.into_inner();
    let merchant = listed(&app, &caller, merchant.as_ref())?;
    if merchant.is_none() && order.is_some() {
        return Err(Access::NoMerchant.into());
    }
    let after = after.map(|after| after.parse()).transpose().map_err(|_invalid| BadCursor)?;
    let merchant = merchant.as_ref();
    let order = order.as_deref();
    let response = drop_shipments::list(&app, merchant, order, after, limit).await?;
    Ok(HttpResponse::Ok().json(response))
}

async fn record(
    app: &App,
    caller: &Caller,
    kind: DropShipmentKind,
    key: KeyHeader,
    body: Json,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(app, caller)?;
    let read = move |document: &Document| DropShipment::read(kind, document);
    let (shipment, digest) = read_body(body, read).await?;
    let request = Request::new(app, &merchant, &key, kind.as_str(), digest);
    let response = drop_shipments::record(app, request, shipment).await?;
    Ok(json_response(StatusCode::CREATED, response))
}
