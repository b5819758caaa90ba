//! `/v1/exchange_orders`: what became of confirmed exchanges, and ending those that cannot go on.

mod words;

use actix_web::{HttpRequest, get, post, web};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::access::{MerchantId, Scope};
use domain::exchange::OrderAmounts;
use domain::returns::UnitId;
use platform::Problem;
use platform::http::{BadCursor, ErrorBody, PageLimit, reserve_for_response};
use platform::identity::Caller;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::endings;
use crate::error::Error;
use crate::store::search::{self, Search};
pub(crate) use words::{State, Stock};

/// More returns than this of one order are not shown with it.
const MOST_RETURNS: i64 = 1000;

/// A confirmed exchange and, if there is one, its exchange order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangeOrderSummary)]
pub(crate) struct ExchangeOrderView {
    pub(crate) merchant: String,
    pub(crate) original_order_id: String,
    pub(crate) rma_identifier: String,
    pub(crate) state: State,
    /// What the merchant calls the new order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exchange_order_identifier: Option<String>,
    /// What the merchant computed, where it said so.
    pub(crate) amounts: OrderAmounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transaction_id: Option<Uuid>,
    /// The message to the merchant, which sees it as webhook-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
    /// The units that are exchanged.
    pub(crate) units: Vec<UnitId>,
    /// The units that are refunded because what was chosen was gone.
    pub(crate) out_of_stock: Vec<UnitId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stock: Option<Stock>,
    /// Why stock is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stock_detail: Option<String>,
    /// When the confirmation was heard.
    pub(crate) received_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ordered_at: Option<DateTime<Utc>>,
    /// When the last word came, the merchant's or an operator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) settled_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangeOrders)]
pub(crate) struct Page {
    /// Newest first.
    exchange_orders: Vec<ExchangeOrderView>,
    /// Ask for what comes after this; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An exchange order with everything about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangeOrderDetails)]
pub(crate) struct Details {
    #[serde(flatten)]
    order: ExchangeOrderView,
    /// What the merchant was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<domain::exchange::ExchangeOrder>)]
    message: Option<Box<RawValue>>,
    /// The orders that led to the original order by earlier exchanges, the very first one first.
    earlier_orders: Vec<String>,
    /// Other returns of the same order that wanted an exchange.
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
    /// Only those of this order
    original_order_id: Option<String>,
    /// Only that of this return
    rma_identifier: Option<String>,
    /// Only that which the merchant calls by this name
    exchange_order_identifier: Option<String>,
    /// Only those in this state
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
/// A merchant sees its own. An operator sees everyone's, or those of the merchant it names in
/// `X-Service-Id`; it must name one to look for an order or a return, whose names are that
/// merchant's.
#[utoipa::path(
    tag = "exchange orders",
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "Exchange orders", body = Page),
        (status = 400, description = "Not a query that can be read", body = ErrorBody),
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
    let mut search = listing.into_inner().understand()?;
    if caller.merchant_scope().is_some() || !caller.is_operator() || search.is_by_name() {
        search.merchant = Some(app.merchants.merchant_for(&caller)?.identifier.clone());
    }
    let mut conn = app.pool.get().await?;
    let (mut found, is_truncated) = search::find(&mut conn, &search, limit.rows()).await?;
    let next = limit.next_of(&mut found, is_truncated, |(position, _)| cursor(*position));
    // While there is a connection: so many pages at most are here without room.
    reserve_for_response(&request, found.iter().map(|(_, order)| order.length()).sum())?;
    let exchange_orders = found.into_iter().map(|(_, order)| order).collect();
    Ok(web::Json(Page { exchange_orders, next }))
}

/// Show the exchange order of an order
///
/// If no order was placed, what became of the newest return that wanted one.
#[utoipa::path(
    tag = "exchange orders",
    params(
        ("original_order_id" = String, Path, description = "The order whose units came back"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The exchange order", body = Details),
        (status = 400, description = "Not a request that can be read", body = ErrorBody),
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
    let id = plausible(original_order_id.into_inner())?;
    details(&app, &merchant.identifier, id, &request).await
}

/// End an exchange order that the merchant did not take
///
/// For an operator, and only while the order is `undeliverable`: it can no longer be replayed, and
/// its units are refunded instead. Ending it again changes nothing.
#[utoipa::path(
    tag = "exchange orders",
    params(
        ("original_order_id" = String, Path, description = "The order whose units came back"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant, for callers without one"),
    ),
    responses(
        (status = 200, description = "The exchange order, ended", body = Details),
        (status = 400, description = "Not a request that can be read", body = ErrorBody),
        (status = 401, description = "No valid token", body = ErrorBody),
        (status = 403, description = "The token may not do this", body = ErrorBody),
        (status = 404, description = "No such exchange order of this merchant", body = ErrorBody),
        (status = 409, description = "The order is not undeliverable, or is being sent again", body = ErrorBody),
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
    let id = plausible(original_order_id.into_inner())?;
    endings::abandon(&app, &merchant.identifier, &id, &caller.claims.client_id).await?;
    details(&app, &merchant.identifier, id, &request).await
}

/// What PostgreSQL cannot hold cannot be there.
fn plausible(original_order_id: String) -> Result<String, Error> {
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
    let (found, _) = search::find(&mut conn, &search, MOST_RETURNS).await?;
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

impl ExchangeOrderView {
    /// About how long it is when it is written out.
    fn length(&self) -> usize {
        let length = |unit: &UnitId| {
            80 + unit.order_identifier.len() + unit.order_line_item_identifier.len()
        };
        self.units.iter().chain(&self.out_of_stock).map(length).sum::<usize>() + 600
    }
}

impl From<ExchangeOrderView> for OtherReturn {
    fn from(view: ExchangeOrderView) -> Self {
        let ExchangeOrderView { rma_identifier, state, received_at, .. } = view;
        Self { rma_identifier, state, received_at }
    }
}

impl Listing {
    fn understand(self) -> Result<Search, Problem> {
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
