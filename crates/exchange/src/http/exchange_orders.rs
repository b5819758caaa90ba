//! `/v1/exchange_orders`: lists, shows and abandons exchange orders.

use actix_web::{HttpRequest, get, post, web};
use api::exchange::{Abandonment, State};
use domain::access::{MerchantId, Scope};
use domain::json::{Object, object, read_fields, text};
use platform::Problem;
use platform::http::{
    BadCursor, ErrorBody, Json, ListOrder, PageLimit, Query, Sequential, reserve_for_response,
};
use platform::identity::Caller;
use serde::Deserialize;
use uuid::Uuid;

use super::READERS;
use crate::App;
use crate::exchange_orders::{self, Details, Page};
use crate::order_settlement;
use crate::store::search::Search;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listing {
    /// Filter by merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// Filter by original order
    original_order_id: Option<String>,
    /// Filter by return
    rma_identifier: Option<String>,
    /// Filter by the identifier of the new order
    exchange_order_identifier: Option<String>,
    /// Filter by the `transaction_id` of the payment
    transaction_id: Option<Uuid>,
    /// Filter by state
    state: Option<State>,
    /// `newest` or `oldest` first
    #[serde(default)]
    #[param(inline)]
    order: ListOrder,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// List exchange orders
///
/// Newest first unless `order` is `oldest`. A token of a merchant lists the merchant's exchange orders. A token
/// without a merchant and with the scope `read` lists those of every merchant, or of the one in `merchant` or
/// `X-Service-Id`.
#[utoipa::path(
    tag = "exchange orders",
    params(
        Listing,
        ("X-Service-Id" = Option<String>, Header, description = "The merchant. Not needed with a token of a merchant or with the scope `read`"),
    ),
    responses((status = 200, description = "Exchange orders", body = Page)),
    security(("bearer" = ["returns"]), ("bearer" = ["read"])),
)]
#[get("/v1/exchange_orders")]
pub(crate) async fn list_exchange_orders(
    app: web::Data<App>,
    caller: Caller,
    listing: Query<Listing>,
    request: HttpRequest,
) -> Result<web::Json<Page>, Problem> {
    caller.require_any(&READERS)?;
    let limit = listing.limit;
    let merchant = app.merchants.listed_for(&caller, listing.merchant.as_ref())?;
    let search = Search { merchant, ..listing.into_inner().parse()? };
    let mut conn = app.pool.reader(search.merchant.as_ref().map(MerchantId::as_str)).await?;
    let page = exchange_orders::list(&mut conn, &search, limit).await?;
    // Before the connection is returned: the pool then limits the pages without a memory permit.
    reserve_for_response(&request, page.length())?;
    Ok(web::Json(page))
}

/// Show the exchange order of an order
///
/// If the order has no exchange order, shows the newest return that requested an exchange.
#[utoipa::path(
    tag = "exchange orders",
    params(
        ("original_order_id" = String, Path, description = "The order whose units are returned"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, description = "The exchange order", body = Details)),
    security(("bearer" = ["returns"]), ("bearer" = ["read"])),
)]
#[get("/v1/exchange_orders/{original_order_id}")]
pub(crate) async fn show_exchange_order(
    app: web::Data<App>,
    caller: Caller,
    original_order_id: web::Path<String>,
    request: HttpRequest,
) -> Result<web::Json<Details>, Problem> {
    caller.require_any(&READERS)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    show(&app, &merchant.identifier, &original_order_id, &request).await
}

/// The reason to abandon an exchange order.
#[derive(utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAbandonment {
    /// Shown with the exchange order and the operator.
    #[schema(min_length = 1, max_length = 1000)]
    note: String,
}

/// Abandon an undeliverable exchange order
///
/// The exchange order must be `undeliverable` or `already_exists`. The delivery can no longer be replayed,
/// and the units are refunded. The note says why and is stored with the operator. Repeating the request
/// with the same note changes nothing.
#[utoipa::path(
    tag = "exchange orders",
    params(
        ("original_order_id" = String, Path, description = "The order whose units are returned"),
        ("X-Service-Id" = Option<String>, Header),
    ),
    request_body(content = NewAbandonment, example = json!({ "note": "The merchant cannot exchange gift cards" })),
    responses(
        (status = 200, description = "The abandoned exchange order", body = Details),
        (status = 409, description = "The exchange order is not undeliverable, is being replayed, or was abandoned with another note", body = ErrorBody),
    ),
    security(("bearer" = ["operator"])),
)]
#[post("/v1/exchange_orders/{original_order_id}/abandon")]
pub(crate) async fn abandon_exchange_order(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
    original_order_id: web::Path<String>,
    request: HttpRequest,
) -> Result<web::Json<Details>, Problem> {
    caller.require(Scope::Operator)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let NewAbandonment { note } = body.read(object(read_note)).await?;
    let id = &merchant.identifier;
    let by = caller.actor().to_owned();
    order_settlement::abandon(&app, id, &original_order_id, &Abandonment { by, note }).await?;
    show(&app, id, &original_order_id, &request).await
}

pub(crate) fn read_note(body: &Object<'_>) -> Option<NewAbandonment> {
    read_fields!(body => NewAbandonment { note: body.required("note", text(1..=1_000)) })
}

async fn show(
    app: &App,
    merchant: &MerchantId,
    original_order_id: &str,
    request: &HttpRequest,
) -> Result<web::Json<Details>, Problem> {
    let mut conn = app.pool.get().await?;
    let details = exchange_orders::show(&mut conn, merchant, original_order_id).await?;
    reserve_for_response(request, details.length())?;
    Ok(web::Json(details))
}

impl Listing {
    fn parse(self) -> Result<Search, BadCursor> {
        let after = self.after.map(|after| exchange_orders::position(&after).ok_or(BadCursor));
        Ok(Search {
            merchant: self.merchant,
            original_order_id: self.original_order_id,
            rma_identifier: self.rma_identifier,
            exchange_order_identifier: self.exchange_order_identifier,
            transaction_id: self.transaction_id.map(|id| id.to_string()),
            state: self.state,
            order: self.order,
            after: after.transpose()?,
        })
    }
}
