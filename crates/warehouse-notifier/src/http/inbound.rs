//! `/v1/inbound_asns`: shipments that merchants expect to arrive. Merchants and warehouses may use it.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, get, post, put, web};
use domain::warehouse::{InboundAsn, sample};
use platform::Problem;
use platform::http::{Json, Query, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::Caller;

use super::{ListQuery, listed, reader, warehouse_or_merchant};
use crate::App;
use crate::inbound::{self, AsnPage, AsnView, Registered};
use crate::list_position::ListPosition;
use crate::request::{Request, read_body};

/// Register an ASN
///
/// Units are received against an ASN. Each number can be used once; repeating the same ASN changes
/// nothing.
#[utoipa::path(
    tag = "inbound ASNs", security(("bearer" = ["warehouse"]), ("bearer" = ["orders"])),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = InboundAsn, example = json!(sample::inbound_asn("ASN-2", 1))),
    responses((status = 201, body = Registered))
)]
#[post("/v1/inbound_asns")]
pub(crate) async fn register_asn(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let (asn, digest) = read_body(body, InboundAsn::read).await?;
    let request = Request::new(&app, &merchant, &key, "inbound_asns", digest);
    let response = inbound::register(&app, request, asn).await?;
    Ok(json_response(StatusCode::CREATED, response))
}

/// Change an ASN
///
/// Replaces the whole ASN. An ASN cannot change after one of its units was received.
#[utoipa::path(
    tag = "inbound ASNs", security(("bearer" = ["warehouse"]), ("bearer" = ["orders"])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = InboundAsn, example = json!(sample::inbound_asn("ASN-2", 1))),
    responses((status = 200, body = AsnView))
)]
#[put("/v1/inbound_asns/{asn_number}")]
pub(crate) async fn change_asn(
    app: web::Data<App>,
    asn_number: web::Path<String>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse_or_merchant(&app, &caller)?;
    let (asn, digest) = read_body(body, InboundAsn::read).await?;
    let response = inbound::change(&app, &merchant.identifier, &asn_number, asn, digest).await?;
    Ok(HttpResponse::Ok().json(response))
}

/// Show an ASN
///
/// Shows the number of units expected and received for each line.
#[utoipa::path(
    tag = "inbound ASNs",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        ("asn_number" = String, Path),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = AsnView))
)]
#[get("/v1/inbound_asns/{asn_number}")]
pub(crate) async fn show_asn(
    app: web::Data<App>,
    caller: Caller,
    asn_number: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let merchant = reader(&app, &caller)?;
    let response = inbound::show(&app, &request, &merchant.identifier, &asn_number).await?;
    Ok(HttpResponse::Ok().json(response))
}

/// List ASNs
///
/// Sorted by merchant and ASN number. A token of a merchant finds the merchant's ASNs. A token without a
/// merchant and with the scope `read` finds those of every merchant, or of the one in `merchant` or
/// `X-Service-Id`.
#[utoipa::path(
    tag = "inbound ASNs",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        ListQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = AsnPage))
)]
#[get("/v1/inbound_asns")]
pub(crate) async fn list_asns(
    app: web::Data<App>,
    caller: Caller,
    query: Query<ListQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = listed(&app, &caller, query.merchant.as_ref())?;
    let after = ListPosition::read(query.after.as_deref())?;
    let response = inbound::list(&app, merchant.as_ref(), &after, query.limit).await?;
    Ok(HttpResponse::Ok().json(response))
}
