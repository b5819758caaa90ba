//! `GET /v1/variants/{variant_identifier}`: the variants that a shopper can choose.

use actix_web::{HttpRequest, HttpResponse, get, web};
use domain::exchange::VariantIdentifier;
use platform::Problem;
use platform::http::{ErrorBody, reserve_for_response};
use platform::shopper_proof::{ProvenOrders, Requester, remove_amounts};
use serde_json::json;

use super::READERS;
use crate::App;
use crate::error::Error;
use crate::variant_cache::OfferView;

/// Show the variants of a product
///
/// Returns variants from the merchant, cached for a few seconds. The response arrives within three
/// seconds even if the merchant does not respond; it is then 502 or 503, and a return continues
/// without an exchange. A giftee gets no prices.
#[utoipa::path(
    tag = "variants",
    params(
        ("variant_identifier" = String, Path, description = "The line's variant_identifier, 1 to 255 characters"),
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The variants, or the reason that there are none", body = OfferView),
        (status = 429, description = "Too many requests from this address or to this merchant; see Retry-After", body = ErrorBody),
        (status = 502, description = "The merchant's server cannot be reached; `code` has the reason", body = ErrorBody),
        (status = 503, description = "The merchant's server did not respond in time; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["shopper"])),
)]
#[get("/v1/variants/{variant_identifier}")]
pub(crate) async fn show_variants(
    app: web::Data<App>,
    requester: Requester,
    identifier: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let shopper = requester.authorize(&READERS)?;
    let merchant = app.merchants.merchant_for(&requester.caller)?;
    let product = VariantIdentifier::parse(&identifier).map_err(Error::from)?;
    let lookup = app.variant_cache.get(&merchant, &product).await;
    match &lookup {
        Ok(offer) => reserve_for_response(&request, offer.length())?,
        Err(none) if !none.is_known() => return Err(Error::Variants(product, none.clone()).into()),
        Err(_) => {}
    }
    let lookup = lookup.as_ref().map(AsRef::as_ref);
    let view = OfferView::new(&product, lookup);
    if shopper.is_some_and(ProvenOrders::has_gift) {
        let mut view = json!(view);
        remove_amounts(&mut view);
        return Ok(HttpResponse::Ok().json(view));
    }
    Ok(HttpResponse::Ok().json(view))
}
