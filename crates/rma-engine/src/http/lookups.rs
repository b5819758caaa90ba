//! `POST /v1/lookups`: proofs that shoppers know their orders.

use actix_web::post;
use actix_web::web;
use domain::access::Scope;
use domain::json::object;
use platform::Problem;
use platform::http::{ClientIp, ErrorBody, Json, Sequential};
use platform::identity::Caller;
use utoipa::ToSchema;

use super::merchant_of;
use crate::App;
use crate::shoppers::lookups::{self, Lookup, Proof};

/// Either `deep_link` alone, or `order_identifier` with one of the others.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct LookupBody {
    #[schema(min_length = 1, max_length = 255)]
    order_identifier: Option<String>,
    /// The e-mail address of the customer; spaces around it and case do not count.
    #[schema(min_length = 1, max_length = 255)]
    email: Option<String>,
    /// The zip code of the shipping address, else of the billing address; spaces, dashes and case do not
    /// count.
    #[schema(min_length = 1, max_length = 255)]
    zip_code: Option<String>,
    /// The code of a gift; dashes and case do not count.
    #[schema(min_length = 1, max_length = 255, example = "K7QP-2MXA-9RTD")]
    gift_code: Option<String>,
    /// The last part of the URL of a deep link.
    #[schema(min_length = 1, max_length = 4096)]
    deep_link: Option<String>,
}

/// Look up an order for a shopper
///
/// The merchant's setting `appearance.lookup_keys` decides whether the e-mail address or the zip code is
/// accepted. Every failure gets the same 404. After 5 failures for an order, or 20 from an address, in an
/// hour, further look-ups get 429, also right ones.
#[utoipa::path(
    tag = "shoppers", security(("bearer" = ["shopper"])),
    request_body(content = LookupBody, example = json!({ "order_identifier": "A-1001", "email": "ada@example.com" })),
    params(("X-Service-Id" = Option<String>, Header)),
    responses(
        (status = 200, description = "The proof", body = Proof),
        (status = 404, description = "No order matches, or the merchant does not exist", body = ErrorBody),
        (status = 429, description = "Too many failures or requests; see Retry-After", body = ErrorBody),
    ),
)]
#[post("/v1/lookups")]
pub(crate) async fn look_up_order(
    app: web::Data<App>,
    ClientIp(address): ClientIp,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<Proof>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Shopper)?;
    let lookup = body.read(object(Lookup::read)).await?;
    Ok(web::Json(lookups::look_up(&app, &merchant, address, &lookup).await?))
}
