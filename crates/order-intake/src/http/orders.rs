//! `GET /v1/orders`: a merchant's own orders.

use actix_web::{HttpRequest, get, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::access::Scope;
use platform::http::{BadCursor, ErrorBody, PageLimit, reserve_for_response};
use platform::identity::Caller;
use platform::{ErrorKind, Failure, Problem};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::App;
use crate::store::{self, Search};

/// An order as it is stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrder {
    pub(crate) identifier: String,
    #[schema(example = "Shipped")]
    pub(crate) status: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    /// When this snapshot came in.
    pub(crate) received_at: DateTime<Utc>,
    /// The order as it was published, unknown fields included.
    #[schema(value_type = Object)]
    pub(crate) document: Box<RawValue>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrders {
    /// Sorted by identifier.
    orders: Vec<StoredOrder>,
    /// Ask for what comes after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Only the order with this identifier
    identifier: Option<String>,
    /// Only orders of the shopper with this e-mail address, in any case
    customer_email: Option<String>,
    /// Only orders with a line of this identifier
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
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "Orders", body = StoredOrders),
        (status = 400, description = "Not a query that can be read", body = ErrorBody),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
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
    let search = listing.into_inner().understand()?;
    let mut conn = app.pool.get().await?;
    let found = store::search(&mut conn, &merchant.identifier, &search, limit.rows()).await?;
    let (mut orders, is_truncated) = found;
    let next =
        limit.next_of(&mut orders, is_truncated, |last| URL_SAFE_NO_PAD.encode(&last.identifier));
    // While there is a connection: so many pages at most are here without room.
    reserve_for_response(&request, orders.iter().map(|order| order.document.get().len()).sum())?;
    Ok(web::Json(StoredOrders { orders, next }))
}

/// Shows one of the merchant's orders.
#[utoipa::path(
    tag = "orders",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The order", body = StoredOrder),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 404, description = "No such order of this merchant", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
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
    // What PostgreSQL cannot hold cannot be there.
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
    fn understand(self) -> Result<Search, BadQuery> {
        let after = self.after.map(|cursor| {
            let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_garbage| BadCursor)?;
            String::from_utf8(bytes).map_err(|_garbage| BadCursor)
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
