//! `/v1/drop_shipments`: confirmations and cancellations of orders that a warehouse ships for a merchant.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, post, web};
use domain::json::Digest;
use domain::warehouse::{
    DropShipment, DropShipmentCancellation, DropShipmentConfirmation, DropShipmentKind,
    DropShipmentPartialCancellation, sample,
};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;

use super::warehouse;
use crate::App;
use crate::drop_shipments::{self, Accepted};
use crate::request::Request;

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
    responses(
        (status = 201, body = Accepted), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 503, body = ErrorBody),
    )
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
    responses(
        (status = 201, body = Accepted), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 503, body = ErrorBody),
    )
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
    responses(
        (status = 201, body = Accepted), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
#[post("/v1/drop_shipments/partial_cancellations")]
pub(crate) async fn cancel_drop_shipment_partially(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    record(&app, &caller, DropShipmentKind::PartialCancellation, key, body).await
}

async fn record(
    app: &App,
    caller: &Caller,
    kind: DropShipmentKind,
    key: KeyHeader,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(app, caller)?;
    let shipment = DropShipment::read(kind, &document)?;
    let (at, merchant) = (app.clock.now(), &merchant.identifier);
    let digest = Digest::of(document.value());
    let key = key.key_for(merchant, kind.as_str(), digest);
    let request = Request { merchant, key, digest, at };
    let response = drop_shipments::record(app, request, shipment).await?;
    Ok(json_response(StatusCode::CREATED, response))
}
