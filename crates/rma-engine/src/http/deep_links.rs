//! `POST /v1/deep_links`: links and gift codes with which shoppers reach one order without a look-up.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, post, web};
use domain::access::Scope;
use domain::json::{Object, integer, object, text};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential};
use platform::identity::Caller;
use utoipa::ToSchema;

use super::{check_staff, merchant_of};
use crate::App;
use crate::deep_links::{self, DeepLink, NewDeepLink};

/// The order of a new deep link.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct DeepLinkBody {
    #[schema(min_length = 1, max_length = 255)]
    order_identifier: String,
    /// Whether the link is for the giftee, who sees no amounts and can choose no refund.
    #[schema(default = false)]
    is_gift: Option<bool>,
    #[schema(minimum = 1, maximum = 730, default = 90)]
    valid_days: Option<u16>,
}

/// Create a deep link to an order
///
/// For the merchant's own e-mails: the shopper starts a return without a look-up. Nothing is stored, so
/// each request returns another link and all of them work. For a gift the response also has the gift code,
/// which is the same each time.
#[utoipa::path(
    tag = "shoppers", security(("bearer" = ["returns"]), ("bearer" = ["operator"])),
    request_body(content = DeepLinkBody, example = json!({ "order_identifier": "A-1001", "is_gift": false, "valid_days": 90 })),
    params(("X-Service-Id" = Option<String>, Header)),
    responses(
        (status = 201, description = "The link", body = DeepLink),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, description = "No such order of this merchant", body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 503, body = ErrorBody),
    ),
)]
#[post("/v1/deep_links")]
pub(crate) async fn create_deep_link(
    app: web::Data<App>,
    Sequential(caller, Json(document)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Returns)?;
    check_staff(&caller)?;
    let new = document.read(object(read))?;
    let link = deep_links::create(&app, &merchant, &new).await?;
    Ok(HttpResponse::build(StatusCode::CREATED).json(link))
}

fn read(body: &Object<'_>) -> Option<NewDeepLink> {
    body.reject_unknown(&["order_identifier", "is_gift", "valid_days"]);
    let order_identifier = body.required("order_identifier", text(1..=255));
    let is_gift = body.flag("is_gift");
    let valid_days = body.optional("valid_days", integer(1..=730));
    Some(NewDeepLink {
        order_identifier: order_identifier?,
        is_gift: is_gift?,
        valid_days: valid_days?.unwrap_or(90),
    })
}
