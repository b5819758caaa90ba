//! `/v1/outbound_shipments`: shipments that leave a warehouse.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, patch, post, web};
use api::warehouse::{ShipmentDetails, ShipmentView};
use domain::json::Document;
use domain::warehouse::{OutboundShipment, ShipmentChange, sample};
use platform::Problem;
use platform::http::{Json, Query, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;

use super::{ListQuery, listed, reader, warehouse};
use crate::App;
use crate::list_position::ListPosition;
use crate::outbound::{self, ShipmentPage};
use crate::request::{Request, read_body};

/// Report a shipment
///
/// The merchant receives the shipment as one message, or as several if it has more than 1000 units or
/// 512 KiB. Each number can be used once; repeating the same report changes nothing.
///
/// `from` and `to` can name a warehouse of the merchant in `warehouse` and leave out the rest. Then `from` has
/// the external identifier of the warehouse, or else ours. `to` has the address of the warehouse and its stock
/// transfer identifier (stock transfers) or external identifier (freight); the number of a vendor must be
/// given. `eligibility_flags` and `reference` are taken from the inbound ASN of the units if they are left out.
#[utoipa::path(
    tag = "outbound shipments", security(("bearer" = ["warehouse"])),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = OutboundShipment, example = json!(sample::outbound_shipment("ASN-1", 1))),
    responses((status = 201, body = ShipmentView))
)]
#[post("/v1/outbound_shipments")]
pub(crate) async fn report_shipment(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(&app, &caller)?;
    let owner = Arc::clone(&merchant);
    let read = move |document: &Document| OutboundShipment::read(document, &owner.warehouses);
    let (shipment, digest) = read_body(body, read).await?;
    let request = Request::new(&app, &merchant, &key, "outbound_shipments", digest);
    let response = outbound::report(&app, request, shipment).await?;
    Ok(json_response(StatusCode::CREATED, response))
}

/// Change a shipment's date or status
///
/// The status goes from pending to shipped to delivered, or from pending to canceled. The merchant
/// receives a change in as many messages as the shipment. A request that changes nothing sends none.
#[utoipa::path(
    tag = "outbound shipments", security(("bearer" = ["warehouse"])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = ShipmentChange, example = json!({ "ship_date": "2026-03-03T16:00:00Z", "status": "shipped" })),
    responses((status = 200, body = ShipmentView))
)]
#[patch("/v1/outbound_shipments/{asn_number}")]
pub(crate) async fn change_shipment(
    app: web::Data<App>,
    asn_number: web::Path<String>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(&app, &caller)?;
    let change = body.read_with(ShipmentChange::read).await??;
    let response = outbound::change(&app, &merchant.identifier, &asn_number, change).await?;
    Ok(HttpResponse::Ok().json(response))
}

/// Show a shipment
///
/// Shows the shipment with its parties, its current date and status and its messages.
#[utoipa::path(
    tag = "outbound shipments",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = ShipmentDetails))
)]
#[get("/v1/outbound_shipments/{asn_number}")]
pub(crate) async fn show_shipment(
    app: web::Data<App>,
    caller: Caller,
    asn_number: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let merchant = reader(&app, &caller)?;
    let response = outbound::show(&app, &merchant.identifier, &asn_number).await?;
    Ok(HttpResponse::Ok().json(response))
}

/// List shipments
///
/// Sorted by merchant and ASN number. A token of a merchant finds the merchant's shipments. A token without a
/// merchant and with the scope `read` finds those of every merchant, or of the one in `merchant` or
/// `X-Service-Id`.
#[utoipa::path(
    tag = "outbound shipments",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        ListQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = ShipmentPage))
)]
#[get("/v1/outbound_shipments")]
pub(crate) async fn list_shipments(
    app: web::Data<App>,
    caller: Caller,
    query: Query<ListQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = listed(&app, &caller, query.merchant.as_ref())?;
    let after = ListPosition::read(query.after.as_deref())?;
    let response = outbound::list(&app, merchant.as_ref(), &after, query.limit).await?;
    Ok(HttpResponse::Ok().json(response))
}
