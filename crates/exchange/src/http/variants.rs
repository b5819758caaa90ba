//! `GET /v1/variants/{variant_identifier}`: what a shopper can have instead.

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
use crate::offers::Reason;

/// What a merchant offers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Offer)]
struct OfferView<'a> {
    #[schema(value_type = String)]
    variant_identifier: &'a VariantIdentifier,
    /// Whether the merchant said what there is. If not, no variants are shown and the return goes
    /// on without them.
    available: bool,
    /// In the merchant's order, none of them sold out.
    #[schema(value_type = Vec<OfferedVariant>)]
    variants: &'a [OfferedVariant],
    /// When the merchant was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_at: Option<DateTime<Utc>>,
    /// Why nothing is available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// Show the variants of a product
///
/// Asks the merchant, or remembers what it said a moment ago. The answer comes within three seconds
/// whatever the merchant does.
#[utoipa::path(
    tag = "variants",
    params(
        ("variant_identifier" = String, Path, description = "The line's variant_identifier, 1 to 255 characters"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "What the merchant offers, or why that is not known", body = OfferView),
        (status = 400, description = "Not an identifier", body = ErrorBody),
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
    let mut answer = HttpResponse::Ok();
    Ok(match app.offers.of(&merchant, &product).await {
        Ok(offer) => {
            reserve_for_response(&request, offer.length())?;
            answer.json(OfferView {
                variant_identifier: &product,
                available: true,
                variants: &offer.variants.offered,
                asked_at: Some(offer.asked_at),
                reason: None,
                detail: None,
            })
        }
        Err(none) => answer.json(OfferView {
            variant_identifier: &product,
            available: false,
            variants: &[],
            asked_at: None,
            reason: Some(none.reason),
            detail: Some(&none.detail),
        }),
    })
}
