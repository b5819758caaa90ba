//! `POST /returns_portal_orders`.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, post, web};
use chrono::{DateTime, TimeDelta};
use domain::access::Scope;
use domain::order::{ReturnsPortalOrderMessage, sample};
use platform::http::{ErrorBody, JsonSource, Sequential};
use platform::identity::Caller;
use platform::{ErrorKind, Failure, Problem};
use serde_json::Value;

use crate::App;
use crate::publishing::{self, PublishedOrders};

/// The only supported value of the `Api-Version` header.
const API_VERSION: &str = "3";

/// Publish orders
///
/// Each order is a complete snapshot. The snapshot with the latest `updated_at` wins, and repeating a
/// snapshot changes nothing. A message is stored as a whole or not at all. A refund that was sent
/// before can change only in its `rma_identifier`.
#[utoipa::path(
    tag = "orders",
    params(
        ("Api-Version" = String, Header),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = ReturnsPortalOrderMessage, example = json!(example())),
    responses(
        (status = 200, description = "Every order was processed", body = PublishedOrders),
        (status = 413, description = "The body is larger than 5 MiB", body = ErrorBody),
    ),
    security(("bearer" = ["orders"])),
)]
#[post("/returns_portal_orders")]
pub(crate) async fn publish_orders(
    app: web::Data<App>,
    Sequential(caller, (_version, source)): Sequential<Caller, (ApiVersion, JsonSource)>,
) -> Result<web::Json<PublishedOrders>, Problem> {
    caller.require(Scope::Orders)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    Ok(web::Json(publishing::publish(app.into_inner(), &merchant, source).await?))
}

/// The message in the API document.
fn example() -> Value {
    let until = DateTime::UNIX_EPOCH + TimeDelta::days(20_500);
    sample::message(&[sample::Orders::new(1, until).at(0)])
}

/// Rejects requests without the supported `Api-Version`.
pub(crate) struct ApiVersion;

#[derive(Debug, thiserror::Error)]
#[error("the Api-Version header must be {API_VERSION}")]
struct WrongVersion;

impl Failure for WrongVersion {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

impl FromRequest for ApiVersion {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let version = request.headers().get("api-version").and_then(|value| value.to_str().ok());
        let is_supported = version.is_some_and(|version| version.trim() == API_VERSION);
        std::future::ready(if is_supported { Ok(Self) } else { Err(WrongVersion.into()) })
    }
}
