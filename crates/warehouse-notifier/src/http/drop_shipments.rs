//! `/v1/drop_shipments`: what becomes of orders that a warehouse sends for a merchant.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, post, web};
use chrono::{DateTime, Utc};
use domain::json::Digest;
use domain::warehouse::{
    DropShipment, DropShipmentCancellation, DropShipmentConfirmation, DropShipmentKind,
    DropShipmentPartialCancellation,
};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::warehouse;
use crate::App;
use crate::drop_shipments;
use crate::request::Request;

/// The merchant is being told.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Accepted {
    id: Uuid,
    /// The merchant's identifier of the order.
    order: String,
    created_at: DateTime<Utc>,
}

impl Accepted {
    pub(crate) fn new(id: Uuid, order: &str, created_at: DateTime<Utc>) -> Self {
        Self { id, order: order.to_owned(), created_at }
    }
}

/// Confirm that a drop shipment left
///
/// A shipment is confirmed once; an order that was cancelled cannot be shipped.
#[utoipa::path(
    tag = "drop shipments", security(("bearer" = [])),
    params(
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gets the same answer"),
    ),
    request_body = DropShipmentConfirmation,
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
    tell(&app, &caller, DropShipmentKind::Confirmation, key, body).await
}

/// Cancel a drop shipment
///
/// As a whole; nothing is told of the order afterwards.
#[utoipa::path(
    tag = "drop shipments", security(("bearer" = [])),
    params(
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gets the same answer"),
    ),
    request_body = DropShipmentCancellation,
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
    tell(&app, &caller, DropShipmentKind::Cancellation, key, body).await
}

/// Cancel some items of a drop shipment
#[utoipa::path(
    tag = "drop shipments", security(("bearer" = [])),
    params(
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gets the same answer"),
    ),
    request_body = DropShipmentPartialCancellation,
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
    tell(&app, &caller, DropShipmentKind::PartialCancellation, key, body).await
}

async fn tell(
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
    let key = key.of(merchant, kind.as_str(), digest);
    let request = Request { merchant, key, digest, at };
    let response = drop_shipments::tell(app, request, shipment).await?;
    Ok(json_response(StatusCode::CREATED, response))
}
