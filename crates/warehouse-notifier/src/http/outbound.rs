//! `/v1/outbound_shipments`: shipments that leave a warehouse.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, patch, post, web};
use chrono::{DateTime, Utc};
use domain::json::Digest;
use domain::warehouse::{AsnPart, AsnStatus, OutboundHeader, OutboundShipment, ShipmentChange};
use platform::Problem;
use platform::http::{ErrorBody, Json, Page, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{warehouse, warehouse_or_merchant};
use crate::App;
use crate::outbound;
use crate::request::Request;
use crate::store::outbound::{self as store, StoredShipment};

/// A shipment and the messages it is told in.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShipmentView {
    #[schema(example = "ASN-1001")]
    asn_number: String,
    #[schema(example = "freight")]
    shipment_type: String,
    status: AsnStatus,
    ship_date: DateTime<Utc>,
    shipment_identifier: String,
    channel: String,
    units: usize,
    /// In the order in which the merchant receives them.
    messages: Vec<MessageView>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct MessageView {
    /// The shipment's, with a suffix when there are several.
    asn_number: String,
    units: usize,
}

/// A shipment in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentSummary {
    asn_number: String,
    shipment_type: String,
    status: AsnStatus,
    ship_date: DateTime<Utc>,
    units: i32,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentPage {
    /// Sorted by number.
    outbound_shipments: Vec<ShipmentSummary>,
    /// Ask for what comes after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl ShipmentView {
    /// A shipment as it was reported.
    pub(crate) fn new(
        shipment_type: &str,
        header: &OutboundHeader,
        parts: &[AsnPart],
        created_at: DateTime<Utc>,
    ) -> Self {
        let message =
            |part: &AsnPart| MessageView { asn_number: part.asn_number.clone(), units: part.units };
        Self {
            asn_number: header.asn_number.clone(),
            shipment_type: shipment_type.to_owned(),
            status: header.status,
            ship_date: header.ship_date,
            shipment_identifier: header.shipment_identifier.clone(),
            channel: header.channel.clone(),
            units: parts.iter().map(|part| part.units).sum(),
            messages: parts.iter().map(message).collect(),
            created_at,
            updated_at: created_at,
        }
    }

    /// A shipment as it stands.
    pub(crate) fn of(stored: &StoredShipment, parts: &[AsnPart]) -> Self {
        let StoredShipment { shipment_type, header, created_at, updated_at, .. } = stored;
        Self { updated_at: *updated_at, ..Self::new(shipment_type, header, parts, *created_at) }
    }
}

impl From<StoredShipment> for ShipmentSummary {
    fn from(stored: StoredShipment) -> Self {
        let StoredShipment { asn_number, shipment_type, header, units, .. } = stored;
        Self {
            asn_number,
            shipment_type,
            status: header.status,
            ship_date: header.ship_date,
            units,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

/// Report a shipment
///
/// The merchant is told at once, in several messages when there are more than 1000 units or
/// 512 KiB. A number is used once; the same report again changes nothing.
#[utoipa::path(
    tag = "outbound shipments", security(("bearer" = [])),
    params(
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gets the same answer"),
    ),
    request_body = OutboundShipment,
    responses(
        (status = 201, body = ShipmentView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, description = "Some fields are not valid; nothing is stored", body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[post("/v1/outbound_shipments")]
pub(crate) async fn report_shipment(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(&app, &caller)?;
    let shipment = OutboundShipment::read(&document)?;
    let digest = Digest::of(document.value());
    drop(document);
    let (at, merchant) = (app.clock.now(), &merchant.identifier);
    let key = key.of(merchant, "outbound_shipments", digest);
    let request = Request { merchant, key, digest, at };
    let response = outbound::report(&app, request, shipment).await?;
    Ok(json_response(StatusCode::CREATED, response))
}

/// Change a shipment's date or status
///
/// A status goes from pending to shipped to delivered, or from pending to canceled. A change is
/// told to the merchant in as many messages as the shipment; what changes nothing is not told.
#[utoipa::path(
    tag = "outbound shipments", security(("bearer" = [])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    request_body = ShipmentChange,
    responses(
        (status = 200, body = ShipmentView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[patch("/v1/outbound_shipments/{asn_number}")]
pub(crate) async fn change_shipment(
    app: web::Data<App>,
    asn_number: web::Path<String>,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(&app, &caller)?;
    let change = ShipmentChange::read(&document)?;
    let answer = outbound::change(&app, &merchant.identifier, &asn_number, change).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// Show a shipment
#[utoipa::path(
    tag = "outbound shipments", security(("bearer" = [])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, body = ShipmentView), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[get("/v1/outbound_shipments/{asn_number}")]
pub(crate) async fn show_shipment(
    app: web::Data<App>,
    caller: Caller,
    asn_number: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let answer = outbound::show(&app, &merchant.identifier, &asn_number).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// List shipments
#[utoipa::path(
    tag = "outbound shipments", security(("bearer" = [])),
    params(
        Page,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, body = ShipmentPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[get("/v1/outbound_shipments")]
pub(crate) async fn list_shipments(
    app: web::Data<App>,
    caller: Caller,
    page: web::Query<Page>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let (after, limit) = (page.after(), page.limit);
    let mut conn = app.pool.get().await?;
    let (mut found, is_truncated) =
        store::page(&mut conn, &merchant.identifier, after, limit.rows()).await?;
    let name = |stored: &StoredShipment| stored.asn_number.clone();
    let next = limit.next(&mut found, name);
    let next = next.or_else(|| found.last().filter(|_| is_truncated).map(name));
    let outbound_shipments = found.into_iter().map(ShipmentSummary::from).collect();
    Ok(HttpResponse::Ok().json(ShipmentPage { outbound_shipments, next }))
}
