//! `GET /v1/orders`.

use actix_web::{HttpRequest, get, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::access::Scope;
use platform::http::{BadCursor, ErrorBody, PageLimit, reserve_for_response};
use platform::identity::Caller;
use platform::{ErrorKind, Failure, Problem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::App;
use crate::orders::StoredOrder;
use crate::store::{self, Search};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrders {
    /// Sorted by identifier.
    orders: Vec<StoredOrder>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
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

#[derive(Debug, thiserror::Error)]
enum BadQuery {
    #[error(transparent)]
    After(#[from] BadCursor),
    #[error("{0} must not contain a NUL character")]
    Nul(&'static str),
}

impl Failure for BadQuery {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no order {0}")]
struct NoSuchOrder(String);

impl Failure for NoSuchOrder {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Missing
    }
}

/// Lists the merchant's orders.
#[utoipa::path(
    tag = "orders",
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant; required when the token has none"),
    ),
    responses(
        (status = 200, description = "Orders", body = StoredOrders),
        (status = 400, description = "The query is invalid", body = ErrorBody),
        (status = 401, description = "The token is missing or invalid", body = ErrorBody),
        (status = 403, description = "The token lacks the required scope", body = ErrorBody),
        (status = 503, description = "Temporarily unavailable; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[get("/v1/orders")]
pub(crate) async fn list_orders(
    app: web::Data<App>,
    caller: Caller,
    listing: web::Query<Listing>,
    request: HttpRequest,
) -> Result<web::Json<StoredOrders>, Problem> {
    caller.require(Scope::Orders)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let limit = listing.limit;
    let search = listing.into_inner().parse()?;
    let mut conn = app.pool.get().await?;
    let found = store::search(&mut conn, &merchant.identifier, &search, limit.rows()).await?;
    let (mut orders, is_truncated) = found;
    let next =
        limit.next_of(&mut orders, is_truncated, |last| URL_SAFE_NO_PAD.encode(&last.identifier));
    // Reserved before the connection is released, so the pool bounds the pages without a reservation.
    reserve_for_response(&request, orders.iter().map(|order| order.document.get().len()).sum())?;
    Ok(web::Json(StoredOrders { orders, next }))
}

/// Returns one of the merchant's orders.
#[utoipa::path(
    tag = "orders",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant; required when the token has none"),
    ),
    responses(
        (status = 200, description = "The order", body = StoredOrder),
        (status = 401, description = "The token is missing or invalid", body = ErrorBody),
        (status = 403, description = "The token lacks the required scope", body = ErrorBody),
        (status = 404, description = "The order does not exist", body = ErrorBody),
        (status = 503, description = "Temporarily unavailable; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
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
    let identifier = identifier.into_inner();
    // PostgreSQL cannot store NUL, so no stored identifier contains it.
    if !identifier.contains('\0') {
        let mut conn = app.pool.get().await?;
        let search = Search { identifier: Some(identifier.clone()), ..Search::default() };
        let (mut found, _) = store::search(&mut conn, &merchant.identifier, &search, 1).await?;
        if let Some(order) = found.pop() {
            reserve_for_response(&request, order.document.get().len())?;
            return Ok(web::Json(order));
        }
    }
    Err(NoSuchOrder(identifier).into())
}

impl Listing {
    fn parse(self) -> Result<Search, BadQuery> {
        let after = self.after.map(|cursor| {
            let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_invalid| BadCursor)?;
            String::from_utf8(bytes).map_err(|_invalid| BadCursor)
        });
        let search = Search {
            identifier: without_nul("identifier", self.identifier)?,
            customer_email: without_nul("customer_email", self.customer_email)?
                .map(|email| email.to_lowercase()),
            line_identifier: without_nul("line_identifier", self.line_identifier)?,
            after: without_nul("after", after.transpose()?)?,
        };
        Ok(search)
    }
}

fn without_nul(name: &'static str, text: Option<String>) -> Result<Option<String>, BadQuery> {
    match text {
        Some(text) if text.contains('\0') => Err(BadQuery::Nul(name)),
        text => Ok(text),
    }
}
