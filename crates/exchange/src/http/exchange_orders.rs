//! `/v1/exchange_orders`: lists, shows and abandons exchange orders.

use actix_web::{HttpRequest, get, post, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::access::{MerchantId, Scope};
use platform::Problem;
use platform::http::{BadCursor, ErrorBody, PageLimit, reserve_for_response};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::exchange_orders::{ExchangeOrderView, State};
use crate::order_settlement;
use crate::store::search::{self, Search};

/// Limit on the returns that are shown with one order.
const MAX_RETURNS: i64 = 1000;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangeOrders)]
pub(crate) struct Page {
    /// Newest first.
    exchange_orders: Vec<ExchangeOrderView>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An exchange order with its message and related orders and returns.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangeOrderDetails)]
pub(crate) struct Details {
    #[serde(flatten)]
    order: ExchangeOrderView,
    /// The message that was sent to the merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<domain::exchange::ExchangeOrder>)]
    message: Option<Box<RawValue>>,
    /// Orders that led to the original order through earlier exchanges, oldest first.
    earlier_orders: Vec<String>,
    /// Other returns of the same order that requested an exchange.
    other_returns: Vec<OtherReturn>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OtherReturn {
    rma_identifier: String,
    state: State,
    received_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Filter by original order
    original_order_id: Option<String>,
    /// Filter by return
    rma_identifier: Option<String>,
    /// Filter by the merchant's identifier of the new order
    exchange_order_identifier: Option<String>,
    /// Filter by state
    state: Option<State>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// List exchange orders
///
/// Merchants see their own exchange orders. Operators see those of every merchant, or of the merchant
/// in `X-Service-Id`. The header is required to filter by order or return, because their identifiers
/// are unique only within one merchant.
#[utoipa::path(
    tag = "exchange orders",
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "Exchange orders", body = Page),
        (status = 400, description = "Invalid query", body = ErrorBody),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[get("/v1/exchange_orders")]
pub(crate) async fn list_exchange_orders(
    app: web::Data<App>,
    caller: Caller,
    listing: web::Query<Listing>,
    request: HttpRequest,
) -> Result<web::Json<Page>, Problem> {
    caller.require(Scope::Returns)?;
    let limit = listing.limit;
    let mut search = listing.into_inner().parse()?;
    if caller.merchant_scope().is_some() || !caller.is_operator() || search.is_by_name() {
        search.merchant = Some(app.merchants.merchant_for(&caller)?.identifier.clone());
    }
    let mut conn = app.pool.get().await?;
    let (mut found, is_truncated) = search::find(&mut conn, &search, limit.rows()).await?;
    let next = limit.next_of(&mut found, is_truncated, |(position, _)| cursor(*position));
    // Before the connection is returned: the pool then limits the pages without a memory permit.
    reserve_for_response(&request, found.iter().map(|(_, order)| order.length()).sum())?;
    let exchange_orders = found.into_iter().map(|(_, order)| order).collect();
    Ok(web::Json(Page { exchange_orders, next }))
}

/// Show the exchange order of an order
///
/// If the order has no exchange order, shows the newest return that requested an exchange.
#[utoipa::path(
    tag = "exchange orders",
    params(
        ("original_order_id" = String, Path, description = "The order whose units are returned"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The exchange order", body = Details),
        (status = 400, description = "Invalid request", body = ErrorBody),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 404, description = "No such exchange order of this merchant", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[get("/v1/exchange_orders/{original_order_id}")]
pub(crate) async fn show_exchange_order(
    app: web::Data<App>,
    caller: Caller,
    original_order_id: web::Path<String>,
    request: HttpRequest,
) -> Result<web::Json<Details>, Problem> {
    caller.require(Scope::Returns)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let id = check_storable(original_order_id.into_inner())?;
    details(&app, &merchant.identifier, id, &request).await
}

/// Abandon an undeliverable exchange order
///
/// Requires an operator and state `undeliverable`. The delivery can no longer be replayed, and the
/// units are refunded. Repeating the request changes nothing.
#[utoipa::path(
    tag = "exchange orders",
    params(
        ("original_order_id" = String, Path, description = "The order whose units are returned"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The abandoned exchange order", body = Details),
        (status = 400, description = "Invalid request", body = ErrorBody),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 404, description = "No such exchange order of this merchant", body = ErrorBody),
        (status = 409, description = "The exchange order is not undeliverable, or is being replayed", body = ErrorBody),
        (status = 503, description = "Not possible at the moment; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[post("/v1/exchange_orders/{original_order_id}/abandon")]
pub(crate) async fn abandon_exchange_order(
    app: web::Data<App>,
    caller: Caller,
    original_order_id: web::Path<String>,
    request: HttpRequest,
) -> Result<web::Json<Details>, Problem> {
    caller.require(Scope::Operator)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let id = check_storable(original_order_id.into_inner())?;
    order_settlement::abandon(&app, &merchant.identifier, &id, &caller.claims.client_id).await?;
    details(&app, &merchant.identifier, id, &request).await
}

/// PostgreSQL cannot store NUL, so no such order exists.
fn check_storable(original_order_id: String) -> Result<String, Error> {
    if original_order_id.contains('\0') {
        Err(Error::NoExchange(original_order_id))
    } else {
        Ok(original_order_id)
    }
}

async fn details(
    app: &App,
    merchant: &MerchantId,
    id: String,
    request: &HttpRequest,
) -> Result<web::Json<Details>, Problem> {
    let search = Search {
        merchant: Some(merchant.clone()),
        original_order_id: Some(id.clone()),
        ..Search::default()
    };
    let mut conn = app.pool.get().await?;
    let (found, _) = search::find(&mut conn, &search, MAX_RETURNS).await?;
    let (mut placed, mut others): (Vec<_>, Vec<_>) =
        found.into_iter().map(|(_, order)| order).partition(|order| order.delivery.is_some());
    if placed.is_empty() && !others.is_empty() {
        placed.push(others.remove(0));
    }
    let Some(order) = placed.pop() else { return Err(Error::NoExchange(id).into()) };
    let message = match order.delivery {
        Some(delivery) => Some(search::message(&mut conn, delivery).await?),
        None => None,
    };
    let length = message.as_ref().map_or(0, |message| message.get().len());
    reserve_for_response(request, length + order.length())?;
    let earlier_orders = search::earlier_orders(&mut conn, merchant.as_str(), &id).await?;
    let other_returns = others.into_iter().map(OtherReturn::from).collect();
    Ok(web::Json(Details { order, message, earlier_orders, other_returns }))
}

impl From<ExchangeOrderView> for OtherReturn {
    fn from(view: ExchangeOrderView) -> Self {
        let ExchangeOrderView { rma_identifier, state, received_at, .. } = view;
        Self { rma_identifier, state, received_at }
    }
}

impl Listing {
    fn parse(self) -> Result<Search, Problem> {
        let before = self.after.map(|after| position(&after).ok_or(BadCursor));
        let names =
            [&self.original_order_id, &self.rma_identifier, &self.exchange_order_identifier];
        if names.into_iter().flatten().any(|name| name.contains('\0')) {
            let detail = "an identifier must not contain a NUL character";
            return Err(Error::BadQuery(detail.to_owned()).into());
        }
        Ok(Search {
            merchant: None,
            original_order_id: self.original_order_id,
            rma_identifier: self.rma_identifier,
            exchange_order_identifier: self.exchange_order_identifier,
            state: self.state,
            before: before.transpose()?,
        })
    }
}

fn cursor(position: i64) -> String {
    URL_SAFE_NO_PAD.encode(position.to_string())
}

fn position(cursor: &str) -> Option<i64> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    std::str::from_utf8(&bytes).ok()?.parse().ok()
}
