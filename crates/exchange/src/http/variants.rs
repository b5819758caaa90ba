//! `GET /v1/variants/{variant_identifier}`: the variants that a shopper can choose.

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use domain::access::Scope;
use domain::exchange::{OfferedVariant, VariantIdentifier};
use platform::Problem;
use platform::http::{ErrorBody, reserve_for_response};
use platform::identity::Caller;
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::variant_cache::Reason;

/// The variants that a merchant offers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Offer)]
struct OfferView<'a> {
    #[schema(value_type = String)]
    variant_identifier: &'a VariantIdentifier,
    /// Whether the merchant returned its variants. If not, `variants` is empty and the return
    /// continues without an exchange.
    available: bool,
    /// Variants in stock, in the merchant's order.
    #[schema(value_type = Vec<OfferedVariant>)]
    variants: &'a [OfferedVariant],
    /// Time of the request to the merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_at: Option<DateTime<Utc>>,
    /// Reason that no variants are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Readable form of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// Show the variants of a product
///
/// Returns variants from the merchant, cached for a few seconds. The response arrives within three
/// seconds even if the merchant does not respond.
#[utoipa::path(
    tag = "variants",
    params(
        ("variant_identifier" = String, Path, description = "The line's variant_identifier, 1 to 255 characters"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The variants, or the reason that there are none", body = OfferView),
        (status = 400, description = "Invalid identifier", body = ErrorBody),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[get("/v1/variants/{variant_identifier}")]
pub(crate) async fn show_variants(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Returns)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let product = VariantIdentifier::parse(&identifier).map_err(Error::from)?;
    let mut response = HttpResponse::Ok();
    Ok(match app.variant_cache.get(&merchant, &product).await {
        Ok(offer) => {
            reserve_for_response(&request, offer.length())?;
            response.json(OfferView {
                variant_identifier: &product,
                available: true,
                variants: &offer.variants.offered,
                asked_at: Some(offer.asked_at),
                reason: None,
                detail: None,
            })
        }
        Err(none) => response.json(OfferView {
            variant_identifier: &product,
            available: false,
            variants: &[],
            asked_at: None,
            reason: Some(none.reason),
            detail: Some(&none.detail),
        }),
    })
}
