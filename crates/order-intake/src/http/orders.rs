//! `GET /v1/orders`.

use actix_web::{HttpRequest, get, web};
use api::orders::StoredOrder;
use domain::access::MerchantId;
use platform::http::{BadCursor, PageLimit, Query};
use platform::identity::Caller;
use platform::{ErrorKind, Failure, Problem};
use serde::Deserialize;

use super::require_reader;
use crate::App;
use crate::orders::{self, StoredOrders};
use crate::store::Search;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderQuery {
    /// Only orders of this merchant
    #[param(value_type = Option<String>)]
    merchant: Option<MerchantId>,
    /// Only the order with this identifier
    identifier: Option<String>,
    /// Only orders whose identifier starts with this text. Cannot be combined with `customer_email` or
    /// `line_identifier`.
    identifier_prefix: Option<String>,
    /// Only orders of the shopper with this e-mail address, case-insensitive. Cannot be combined with
    /// `line_identifier`.
    customer_email: Option<String>,
    /// Only orders that have a line with this identifier
    line_identifier: Option<String>,
    /// `identifier`, or `newest` for the orders of one merchant, sorted by creation time, newest first.
    /// `newest` cannot be combined with another filter than `merchant`.
    #[serde(default)]
    #[param(inline)]
    sort: Sort,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// Order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Identifier,
    Newest,
}

#[derive(Debug, thiserror::Error)]
enum BadQuery {
    #[error(transparent)]
    Cursor(#[from] BadCursor),
    #[error("sort=newest needs a merchant and no other filter")]
    Sort,
    #[error("only one of identifier_prefix, customer_email and line_identifier may be given")]
    Filters,
}

impl Failure for BadQuery {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

/// List orders
///
/// The newest snapshot of each order that matches all filters. A token of a merchant finds the merchant's
/// orders. A token without a merchant and with the scope `read` finds the orders of every merchant, or of
/// the one in `merchant` or `X-Service-Id`.
#[utoipa::path(
    tag = "orders",
    params(
        OrderQuery,
        ("X-Service-Id" = Option<String>, Header),
    ),
    responses((status = 200, description = "Orders", body = StoredOrders)),
    security(("bearer" = ["orders"]), ("bearer" = ["read"])),
)]
#[get("/v1/orders")]
pub(crate) async fn list_orders(
    app: web::Data<App>,
    caller: Caller,
    query: Query<OrderQuery>,
    request: HttpRequest,
) -> Result<web::Json<StoredOrders>, Problem> {
    require_reader(&caller)?;
    let merchant = app.merchants.listed_for(&caller, query.merchant.as_ref())?;
    let limit = query.limit;
    let search = query.into_inner().parse(merchant)?;
    Ok(web::Json(orders::list(&app, &request, &search, limit).await?))
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
    responses((status = 200, description = "The order", body = StoredOrder)),
    security(("bearer" = ["orders"]), ("bearer" = ["read"])),
)]
#[get("/v1/orders/{identifier}")]
pub(crate) async fn find_order(
    app: web::Data<App>,
    caller: Caller,
    identifier: web::Path<String>,
    request: HttpRequest,
) -> Result<web::Json<StoredOrder>, Problem> {
    require_reader(&caller)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let order = orders::find(&app, &request, &merchant.identifier, identifier.into_inner()).await?;
    Ok(web::Json(order))
}

impl OrderQuery {
    fn parse(self, merchant: Option<MerchantId>) -> Result<Search, BadQuery> {
        let newest_first = self.sort == Sort::Newest;
        let filters = [&self.identifier_prefix, &self.customer_email, &self.line_identifier];
        let filters = filters.into_iter().filter(|filter| filter.is_some()).count();
        if filters > 1 {
            return Err(BadQuery::Filters);
        }
        if newest_first && (merchant.is_none() || filters > 0 || self.identifier.is_some()) {
            return Err(BadQuery::Sort);
        }
        Ok(Search {
            newest_first,
            merchant,
            identifier: self.identifier,
            identifier_prefix: self.identifier_prefix,
            customer_email: self.customer_email.map(|email| email.to_lowercase()),
            line_identifier: self.line_identifier,
            after: self.after.map(|cursor| orders::read_cursor(&cursor)).transpose()?,
        })
    }
}
