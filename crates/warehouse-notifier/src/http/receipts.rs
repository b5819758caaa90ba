//! `/v1/receipts`: units that arrive in a warehouse.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, web};
use domain::access::MerchantId;
use domain::warehouse::{ReceiptBatch, ReceiptsRequest, sample};
use platform::Problem;
use platform::http::{BadCursor, Json, PageLimit, Query, Sequential, json_response};
use platform::idempotency::KeyHeader;
use platform::identity::{Access, Caller};
use serde::Deserialize;

use super::{listed, warehouse};
use crate::App;
use crate::receipt_batches;
use crate::receipts::{self, ReceiptPage, ReceivedUnits};
use crate::request::{Request, read_body};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReceiptQuery {
    /// Only receipts of this merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// Only receipts of this ASN of the merchant
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
/// A request has one receipt or a batch, which is stored as a whole or not at all. Fields that a
/// receipt omits are taken from the ASN. The merchant receives one message for each unit, even if the
/// unit is reported again. A rejected unit can still be received, which sends another message.
#[utoipa::path(
    tag = "receipts", security(("bearer" = ["warehouse"])),
    params(
        ("X-Service-Id" = Option<String>, Header),
        ("Idempotency-Key" = Option<String>, Header),
    ),
    request_body(content = ReceiptsRequest, example = json!(sample::receipt("ASN-2", 1))),
    responses((status = 201, body = ReceivedUnits))
)]
#[post("/v1/receipts")]
pub(crate) async fn receive_units(
    app: web::Data<App>,
    key: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = warehouse(&app, &caller)?;
    let (receipts, digest) = read_body(body, ReceiptBatch::read).await?;
    let request = Request::new(&app, &merchant, &key, "receipts", digest);
    let response = receipt_batches::receive(&app, request, receipts).await?;
    Ok(json_response(StatusCode::CREATED, response))
}

/// List receipts
///
/// The receipts of the merchant, or of one ASN, newest first. A token without a merchant and with the scope
/// `read` can list the receipts of all merchants; an ASN needs its merchant in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "receipts",
    security(("bearer" = ["warehouse"]), ("bearer" = ["orders"]), ("bearer" = ["read"])),
    params(
        ReceiptQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, body = ReceiptPage))
)]
#[get("/v1/receipts")]
pub(crate) async fn list_receipts(
    app: web::Data<App>,
    caller: Caller,
    listing: Query<ReceiptQuery>,
) -> Result<HttpResponse, Problem> {
    let ReceiptQuery { merchant, asn_number, limit, after } = listing.into_inner();
    let merchant = listed(&app, &caller, merchant.as_ref())?;
    if merchant.is_none() && asn_number.is_some() {
        return Err(Access::NoMerchant.into());
    }
    let after = after.map(|after| after.parse()).transpose();
    let after = after.map_err(|_invalid| BadCursor)?;
    let merchant = merchant.as_ref();
    let asn_number = asn_number.as_deref();
    let response = receipts::list(&app, merchant, asn_number, after, limit).await?;
    Ok(HttpResponse::Ok().json(response))
}
