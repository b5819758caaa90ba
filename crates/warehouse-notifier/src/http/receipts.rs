//! `/v1/receipts`: units that arrive in a warehouse.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, web};
use chrono::{DateTime, Utc};
use domain::json::Digest;
use domain::warehouse::{InventoryReceipt, ReceiptBatch, ReceiptsRequest};
use platform::Problem;
use platform::http::{BadCursor, ErrorBody, Json, PageLimit, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{warehouse, warehouse_or_merchant};
use crate::App;
use crate::error::Error;
use crate::receipts;
use crate::request::Request;
use crate::store::receipts::{self as store, NewReceipt, StoredReceipt};

/// Every unit is received.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReceivedUnits {
    #[schema(example = "2 units received")]
    message: String,
    /// In the order they were sent.
    receipts: Vec<ReceiptView>,
}

impl ReceivedUnits {
    pub(crate) fn new(receipts: Vec<ReceiptView>) -> Self {
        let units = if receipts.len() == 1 { "unit" } else { "units" };
        Self { message: format!("{} {units} received", receipts.len()), receipts }
    }
}

/// A unit as it was first received, or, while it was not, first rejected.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReceiptView {
    id: Uuid,
    asn_number: String,
    line_identifier: String,
    unit_identifier: String,
    received_at: DateTime<Utc>,
}

impl ReceiptView {
    pub(crate) fn new(new: &NewReceipt, received_at: DateTime<Utc>) -> Self {
        Self {
            id: new.id,
            asn_number: new.asn_number.clone(),
            line_identifier: new.line_identifier.clone(),
            unit_identifier: new.unit_identifier.clone(),
            received_at,
        }
    }
}

impl From<StoredReceipt> for ReceiptView {
    fn from(stored: StoredReceipt) -> Self {
        let StoredReceipt { id, asn_number, line_identifier, unit_identifier, .. } = stored;
        let received_at = stored.received_at;
        Self { id, asn_number, line_identifier, unit_identifier, received_at }
    }
}

/// A unit with the message about it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptDetails {
    id: Uuid,
    received_at: DateTime<Utc>,
    /// As the merchant receives it.
    message: InventoryReceipt,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptPage {
    /// Newest first.
    receipts: Vec<ReceiptDetails>,
    /// Ask for what comes after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReceiptQuery {
    /// Only units of this ASN
    asn_number: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// Receive units
///
/// One, or many at once: then all of them or none. What a receipt leaves out comes from the ASN.
/// The merchant is told of each unit once, however often it is received. One that was rejected may
/// still be received; the merchant is told of that too.
#[utoipa::path(
    tag = "receipts", security(("bearer" = [])),
    params(
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gets the same answer"),
    ),
    request_body = ReceiptsRequest,
    responses(
        (status = 201, body = ReceivedUnits), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, description = "Some fields are not valid; nothing is stored", body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[post("/v1/receipts")]
pub(crate) async fn receive_units(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(&app, &caller)?;
    let receipts = ReceiptBatch::read(&document)?;
    let digest = Digest::of(document.value());
    drop(document);
    let (at, merchant) = (app.clock.now(), &merchant.identifier);
    let key = key.of(merchant, "receipts", digest);
    let request = Request { merchant, key, digest, at };
    let response = receipts::receive(&app, request, receipts).await?;
    Ok(json_response(StatusCode::CREATED, response))
}

/// List receipts
#[utoipa::path(
    tag = "receipts", security(("bearer" = [])),
    params(
        ReceiptQuery,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, body = ReceiptPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[get("/v1/receipts")]
pub(crate) async fn list_receipts(
    app: web::Data<App>,
    caller: Caller,
    listing: web::Query<ReceiptQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let ReceiptQuery { asn_number, limit, after } = listing.into_inner();
    let after = after.map(|after| after.parse()).transpose();
    let after = after.map_err(|_garbage| BadCursor)?;
    let mut conn = app.pool.get().await?;
    let merchant = &merchant.identifier;
    let mut found =
        store::page(&mut conn, merchant, asn_number.as_deref(), after, limit.rows()).await?;
    let next = limit.next(&mut found, |stored| stored.id.to_string());
    let receipts: Result<_, Error> = found.into_iter().map(ReceiptDetails::try_from).collect();
    Ok(HttpResponse::Ok().json(ReceiptPage { receipts: receipts?, next }))
}

impl TryFrom<StoredReceipt> for ReceiptDetails {
    type Error = Error;

    fn try_from(stored: StoredReceipt) -> Result<Self, Error> {
        let StoredReceipt { id, received_at, message, .. } = stored;
        Ok(Self { id, received_at, message: serde_json::from_str(&message)? })
    }
}
