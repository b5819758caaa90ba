//! Lists and finds stored orders.

use actix_web::HttpRequest;
use api::orders::StoredOrder;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::access::MerchantId;
use platform::http::{BadCursor, PageLimit, reserve_for_response};
use platform::{ErrorKind, Failure, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::store::{self, Search};
use crate::stored_order::OrderKey;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrders {
    /// Sorted by merchant and identifier, or by creation time with `sort=newest`. A search for a prefix in
    /// the orders of all merchants is sorted by identifier and merchant.
    orders: Vec<StoredOrder>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no order {0}")]
struct NoSuchOrder(String);

impl Failure for NoSuchOrder {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Missing
    }
}

pub(crate) async fn list(
    app: &App,
    request: &HttpRequest,
    search: &Search,
    limit: PageLimit,
) -> Result<StoredOrders, Problem> {
    let mut conn = app.pool.reader(search.merchant.as_ref().map(MerchantId::as_str)).await?;
    let (mut orders, is_truncated) = store::search(&mut conn, search, limit.rows()).await?;
    let next = limit.next_of(&mut orders, is_truncated, |last| {
        URL_SAFE_NO_PAD.encode(format!("{}/{}", last.merchant, last.identifier))
    });
    // Reserved before the connection is released, so the pool bounds the pages without a reservation.
    reserve_for_response(request, orders.iter().map(|order| order.document.get().len()).sum())?;
    Ok(StoredOrders { orders, next })
}

/// The order in a cursor. PostgreSQL text cannot contain NUL, so a cursor with NUL is none of ours.
pub(crate) fn read_cursor(cursor: &str) -> Result<OrderKey, BadCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_invalid| BadCursor)?;
    let text = String::from_utf8(bytes).map_err(|_invalid| BadCursor)?;
    let (merchant, identifier) = text.split_once('/').ok_or(BadCursor)?;
    let merchant = merchant.parse().map_err(|_invalid| BadCursor)?;
    if identifier.contains('\0') {
        return Err(BadCursor);
    }
    Ok(OrderKey { merchant, identifier: identifier.to_owned() })
}

/// Finds one of a merchant's orders.
pub(crate) async fn find(
    app: &App,
    request: &HttpRequest,
    merchant: &MerchantId,
    identifier: String,
) -> Result<StoredOrder, Problem> {
    let mut conn = app.pool.get().await?;
    let search = Search {
        merchant: Some(merchant.clone()),
        identifier: Some(identifier.clone()),
        ..Search::default()
    };
    let (found, _) = store::search(&mut conn, &search, 1).await?;
    let order = found.into_iter().next().ok_or(NoSuchOrder(identifier))?;
    reserve_for_response(request, order.document.get().len())?;
    Ok(order)
}
