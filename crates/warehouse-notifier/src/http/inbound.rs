//! `/v1/inbound_asns`: what merchants expect to arrive. Merchants and warehouses may use it.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, put, web};
use chrono::{DateTime, Utc};
use domain::json::Digest;
use domain::warehouse::{Identifier, InboundAsn, InboundHeader, InboundLine};
use platform::Problem;
use platform::http::{ErrorBody, Json, Page, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::warehouse_or_merchant;
use crate::App;
use crate::inbound;
use crate::request::Request;
use crate::store::inbound::{self as store, StoredAsn};

/// An ASN that is registered.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Registered {
    asn_number: Identifier,
    lines: usize,
    /// The units expected.
    expected: i64,
    registered_at: DateTime<Utc>,
}

impl Registered {
    pub(crate) fn new(
        header: &InboundHeader,
        lines: usize,
        expected: i64,
        registered_at: DateTime<Utc>,
    ) -> Self {
        Self { asn_number: header.asn_number.clone(), lines, expected, registered_at }
    }
}

/// An ASN with what is expected and what was received.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AsnView {
    #[serde(flatten)]
    header: InboundHeader,
    expected: i64,
    received: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    lines: Vec<LineView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineView {
    #[serde(flatten)]
    line: InboundLine,
    received: i64,
}

/// An ASN in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AsnSummary {
    asn_number: Identifier,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipment_identifier: Option<Identifier>,
    lines: i32,
    expected: i64,
    received: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AsnPage {
    /// Sorted by number.
    inbound_asns: Vec<AsnSummary>,
    /// Ask for what comes after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl AsnView {
    pub(crate) fn new(stored: StoredAsn, lines: Vec<(InboundLine, i64)>) -> Self {
        let StoredAsn { header, units, received, created_at, updated_at, .. } = stored;
        let lines = lines.into_iter().map(|(line, received)| LineView { line, received }).collect();
        Self { header, expected: units, received, created_at, updated_at, lines }
    }
}

impl From<StoredAsn> for AsnSummary {
    fn from(stored: StoredAsn) -> Self {
        let StoredAsn { header, lines, units, received, created_at, updated_at, .. } = stored;
        Self {
            asn_number: header.asn_number,
            shipment_identifier: header.shipment_identifier,
            lines,
            expected: units,
            received,
            created_at,
            updated_at,
        }
    }
}

/// Register an ASN
///
/// Units are received against it. A number is used once; the same ASN again changes nothing.
#[utoipa::path(
    tag = "inbound ASNs", security(("bearer" = [])),
    params(
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key gets the same answer"),
    ),
    request_body = InboundAsn,
    responses(
        (status = 201, body = Registered), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 422, description = "Some fields are not valid; nothing is stored", body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[post("/v1/inbound_asns")]
pub(crate) async fn register_asn(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let asn = InboundAsn::read(&document)?;
    let digest = Digest::of(document.value());
    drop(document);
    let (at, merchant) = (app.clock.now(), &merchant.identifier);
    let key = key.of(merchant, "inbound_asns", digest);
    let request = Request { merchant, key, digest, at };
    let response = inbound::register(&app, request, asn).await?;
    Ok(json_response(StatusCode::CREATED, response))
}

/// Change an ASN
///
/// As a whole, and only while no unit of it was received.
#[utoipa::path(
    tag = "inbound ASNs", security(("bearer" = [])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    request_body = InboundAsn,
    responses(
        (status = 200, body = AsnView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[put("/v1/inbound_asns/{asn_number}")]
pub(crate) async fn change_asn(
    app: web::Data<App>,
    asn_number: web::Path<String>,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let asn = InboundAsn::read(&document)?;
    let digest = Digest::of(document.value());
    let answer = inbound::change(&app, &merchant.identifier, &asn_number, asn, digest).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// Show an ASN
///
/// With the units expected and received, line by line.
#[utoipa::path(
    tag = "inbound ASNs", security(("bearer" = [])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, body = AsnView), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[get("/v1/inbound_asns/{asn_number}")]
pub(crate) async fn show_asn(
    app: web::Data<App>,
    caller: Caller,
    asn_number: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let answer = inbound::show(&app, &merchant.identifier, &asn_number).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// List ASNs
#[utoipa::path(
    tag = "inbound ASNs", security(("bearer" = [])),
    params(
        Page,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, body = AsnPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
#[get("/v1/inbound_asns")]
pub(crate) async fn list_asns(
    app: web::Data<App>,
    caller: Caller,
    page: web::Query<Page>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let (after, limit) = (page.after(), page.limit);
    let mut conn = app.pool.get().await?;
    let mut found = store::page(&mut conn, &merchant.identifier, after, limit.rows()).await?;
    let next = limit.next(&mut found, |stored| stored.header.asn_number.to_string());
    let inbound_asns = found.into_iter().map(AsnSummary::from).collect();
    Ok(HttpResponse::Ok().json(AsnPage { inbound_asns, next }))
}
