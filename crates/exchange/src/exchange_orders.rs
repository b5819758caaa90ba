//! Lists and shows exchange orders.

use api::exchange::{ExchangeOrderView, OtherReturn};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::returns::UnitId;
use platform::http::PageLimit;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::error::Error;
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

/// One page of the exchanges that match.
pub(crate) async fn list(
    conn: &mut AsyncPgConnection,
    search: &Search,
    limit: PageLimit,
) -> Result<Page, Error> {
    let (mut found, is_truncated) = search::find(conn, search, limit.rows()).await?;
    let next = limit.next_of(&mut found, is_truncated, |(position, _)| cursor(*position));
    Ok(Page { exchange_orders: found.into_iter().map(|(_, order)| order).collect(), next })
}

/// The exchange order of an order, or the newest return that requested one.
pub(crate) async fn show(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    original_order_id: &str,
) -> Result<Details, Error> {
    let search = Search {
        merchant: Some(merchant.clone()),
        original_order_id: Some(original_order_id.to_owned()),
        ..Search::default()
    };
    let (found, _) = search::find(conn, &search, MAX_RETURNS).await?;
    let (mut ordered, mut others): (Vec<_>, Vec<_>) =
        found.into_iter().map(|(_, order)| order).partition(|order| order.delivery.is_some());
    if ordered.is_empty() && !others.is_empty() {
        ordered.push(others.remove(0));
    }
    let order = ordered.pop().ok_or_else(|| Error::NoExchange(original_order_id.to_owned()))?;
    let message = match order.delivery {
        Some(delivery) => Some(search::message(conn, delivery).await?),
        None => None,
    };
    let earlier_orders = search::earlier_orders(conn, merchant, original_order_id).await?;
    let other_returns = others.into_iter().map(other_return).collect();
    Ok(Details { order, message, earlier_orders, other_returns })
}

impl Page {
    /// Approximate length of the JSON.
    pub(crate) fn length(&self) -> usize {
        self.exchange_orders.iter().map(length).sum()
    }
}

impl Details {
    /// Approximate length of the JSON.
    pub(crate) fn length(&self) -> usize {
        self.message.as_ref().map_or(0, |message| message.get().len()) + length(&self.order)
    }
}

/// Approximate length of the JSON.
fn length(order: &ExchangeOrderView) -> usize {
    let unit_length =
        |unit: &UnitId| 80 + unit.order_identifier.len() + unit.order_line_item_identifier.len();
    let items = order.items.iter().map(|item| 70 + unit_length(&item.unit));
    let failed = order.failed.iter().map(|item| 50 + item.detail.len() + unit_length(&item.unit));
    let note = order.abandonment.as_ref().map_or(0, |it| 50 + it.by.len() + it.note.len());
    items.chain(failed).sum::<usize>() + note + 600
}

fn other_return(view: ExchangeOrderView) -> OtherReturn {
    let ExchangeOrderView { rma_identifier, state, received_at, .. } = view;
    OtherReturn { rma_identifier, state, received_at }
}

fn cursor(position: i64) -> String {
    URL_SAFE_NO_PAD.encode(position.to_string())
}

pub(crate) fn position(cursor: &str) -> Option<i64> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    std::str::from_utf8(&bytes).ok()?.parse().ok()
}
