//! `GET /v1/orders`.

use actix_web::{HttpRequest, get, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::access::Scope;
use platform::Problem;
use platform::http::{BadCursor, ErrorBody, PageLimit};
use platform::identity::Caller;
use serde::Deserialize;

use crate::App;
use crate::orders::{self, StoredOrder, StoredOrders};
use crate::store::Search;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderQuery {
    /// Only the order with this identifier
    identifier: Option<String>,
    /// Only orders of the shopper with this e-mail address, case-insensitive
    customer_email: Option<String>,
    /// Only orders that have a line with this identifier
    line_identifier: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// List orders
///
/// The newest snapshot of each order of the merchant, sorted by identifier.
#[utoipa::path(
    tag = "orders",
    params(
        OrderQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "Orders", body = StoredOrders),
        (status = 400, description = "The query is invalid", body = ErrorBody),
        (status = 401, description = "The token is missing or invalid", body = ErrorBody),
        (status = 403, description = "The token lacks the required scope", body = ErrorBody),
        (status = 503, description = "Temporarily unavailable; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = ["orders"])),
)]
#[get("/v1/orders")]
pub(crate) async fn list_orders(
    app: web::Data<App>,
    caller: Caller,
    query: web::Query<OrderQuery>,
    request: HttpRequest,
) -> Result<web::Json<StoredOrders>, Problem> {
    caller.require(Scope::Orders)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let limit = query.limit;
    let search = query.into_inner().parse()?;
    let orders = orders::list(&app, &request, &merchant.identifier, &search, limit).await?;
    Ok(web::Json(orders))
}

/// Show an order
///
/// The newest snapshot of the order as the merchant sent it.
#[utoipa::path(
    tag = "orders",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses(
        (status = 200, description = "The order", body = StoredOrder),
        (status = 401, description = "The token is missing or invalid", body = ErrorBody),
        (status = 403, description = "The token lacks the required scope", body = ErrorBody),
        (status = 404, description = "The order does not exist", body = ErrorBody),
        (status = 503, description = "Temporarily unavailable; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = ["orders"])),
)]
#[get("/v1/orders/{identifier}")]
pub(crate) async fn find_order(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
    request: HttpRequest,
) -> Result<web::Json<StoredOrder>, Problem> {
    caller.require(Scope::Orders)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let order = orders::find(&app, &request, &merchant.identifier, identifier.into_inner()).await?;
    Ok(web::Json(order))
}

impl OrderQuery {
    fn parse(self) -> Result<Search, BadCursor> {
        Ok(Search {
            identifier: self.identifier,
            customer_email: self.customer_email.map(|email| email.to_lowercase()),
            line_identifier: self.line_identifier,
            after: self.after.map(|cursor| decode(&cursor)).transpose()?,
        })
    }
}

/// The identifier in a cursor. PostgreSQL text cannot contain NUL, so a cursor with NUL is none of ours.
fn decode(cursor: &str) -> Result<String, BadCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_invalid| BadCursor)?;
    let identifier = String::from_utf8(bytes).map_err(|_invalid| BadCursor)?;
    if identifier.contains('\0') { Err(BadCursor) } else { Ok(identifier) }
}
