//! Exchange orders of one merchant or, for staff, of all. Those that need an operator come first.

mod abandon;
mod details;

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join3;
use pages::{
    api::{ApiError, Service},
    text::Moment,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Page, PageResult, Section, SignedIn, html,
    listing::{Chip, Listed, ORDER, Order, PAGE, Sorted, chips, load, merchant_filter, words},
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_exchange_orders).configure(details::routes).configure(abandon::routes);
}

/// The states of an exchange order, and the sentence for each.
const STATES: [(&str, &str); 9] = [
    (
        "undeliverable",
        "The merchant did not accept the exchange order. Replay the delivery, or abandon the exchange order so that the units are refunded.",
    ),
    (
        "already_exists",
        "The merchant says that it has an exchange order for this order already. Replay the delivery, or abandon the exchange order so that the units are refunded.",
    ),
    ("waiting", "The return is confirmed. The exchange order is placed next."),
    ("sending", "The exchange order is being delivered to the merchant."),
    ("placed", "The merchant accepted the exchange order."),
    ("abandoned", "An operator abandoned the exchange order. The units are refunded."),
    ("already_exchanged", "The order had an exchange order already. The units are refunded."),
    (
        "not_exchangeable",
        "Every chosen variant was out of stock or had another price. The units are refunded.",
    ),
    ("unreadable", "The stored confirmation cannot be read and waits for an operator."),
];

fn state_sentence(state: &str) -> &'static str {
    STATES.iter().find(|(name, _)| *name == state).map_or("", |(_, sentence)| sentence)
}

pub(crate) fn state_tone(state: &str) -> &'static str {
    match state {
        "placed" => "good",
        "undeliverable" | "already_exists" | "unreadable" => "bad",
        "waiting" | "sending" => "info",
        _ => "warn",
    }
}

/// An exchange order as the service exchange describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct ExchangeOrder {
    pub(crate) merchant: String,
    pub(crate) original_order_id: String,
    pub(crate) rma_identifier: String,
    pub(crate) state: String,
    pub(crate) exchange_order_identifier: Option<String>,
    pub(crate) delivery: Option<Uuid>,
    #[serde(default)]
    items: Vec<Value>,
    #[serde(default)]
    failed: Vec<Value>,
    pub(crate) received_at: DateTime<Utc>,
    pub(crate) ordered_at: Option<DateTime<Utc>>,
    pub(crate) settled_at: Option<DateTime<Utc>>,
    abandonment: Option<Abandonment>,
}

/// The operator who abandoned an exchange order, and why.
#[derive(Debug, Deserialize)]
struct Abandonment {
    by: String,
    note: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ExchangeOrderPage {
    pub(crate) exchange_orders: Vec<ExchangeOrder>,
    pub(crate) next: Option<String>,
}

/// An exchange order in a table.
pub(crate) struct ExchangeOrderRow {
    pub(crate) url: String,
    pub(crate) state: String,
    pub(crate) tone: &'static str,
    pub(crate) units: usize,
    pub(crate) received: Moment,
    pub(crate) settled: Option<Moment>,
    pub(crate) order: ExchangeOrder,
}

impl ExchangeOrderPage {
    pub(crate) fn rows(self, page: &Page) -> Vec<ExchangeOrderRow> {
        let row = |order: ExchangeOrder| ExchangeOrderRow {
            url: order.url(),
            state: words(&order.state),
            tone: state_tone(&order.state),
            units: order.items.len() + order.failed.len(),
            received: page.moment(order.received_at),
            settled: order.settled_at.map(|at| page.moment(at)),
            order,
        };
        self.exchange_orders.into_iter().map(row).collect()
    }
}

impl ExchangeOrder {
    pub(crate) fn url(&self) -> String {
        url(&self.merchant, &self.original_order_id)
    }
}

fn url(merchant: &str, original_order: &str) -> String {
    format!("/{}", pages::path!("merchants", merchant, "exchange-orders", original_order))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    merchant: String,
    state: String,
    original_order_id: String,
    exchange_order_identifier: String,
    /// `oldest`, or empty for the newest first.
    order: String,
    after: String,
}

impl Filter {
    /// The conditions, each with the list without it.
    fn chips(&self) -> Vec<Chip> {
        chips("/exchange-orders", &self.fields())
    }

    /// The fields of the URL, without the page.
    fn fields(&self) -> [(&'static str, &str); 5] {
        let [state, order, exchange] = self.pairs();
        let sort = (ORDER, Order::of(&self.order).value());
        [("merchant", self.merchant.as_str()), state, order, exchange, sort]
    }

    fn pairs(&self) -> [(&'static str, &str); 3] {
        [
            ("state", self.state.as_str()),
            ("original_order_id", self.original_order_id.as_str()),
            ("exchange_order_identifier", self.exchange_order_identifier.as_str()),
        ]
    }

    fn is_empty(&self) -> bool {
        self.after.is_empty() && self.pairs().iter().all(|(_, value)| value.is_empty())
    }
}

#[derive(Template)]
#[template(path = "exchange_orders.html")]
struct ExchangeOrdersPage {
    page: Page,
    filter: Filter,
    /// Exchange orders that need an operator, without a filter.
    stuck: Vec<ExchangeOrderRow>,
    has_more_stuck: bool,
    list: Listed<Vec<ExchangeOrderRow>>,
    sorted: Sorted,
}

#[get("/exchange-orders")]
async fn list_exchange_orders(signed_in: SignedIn, filter: web::Query<Filter>) -> PageResult {
    let filter = filter.into_inner();
    let merchant = merchant_filter(&signed_in, &filter.merchant)?;
    let page = signed_in.page(Section::ExchangeOrders);
    let [state, order, exchange] = filter.pairs();
    let sort = (ORDER, Order::of(&filter.order).value());
    let query = [state, order, exchange, sort, ("after", filter.after.as_str()), ("limit", PAGE)];
    let (list, undeliverable, existing) = join3(
        load::<ExchangeOrderPage>(&signed_in, Service::Exchange, merchant, PATH, &query),
        load_stuck(&signed_in, merchant, &filter, "undeliverable"),
        load_stuck(&signed_in, merchant, &filter, "already_exists"),
    )
    .await;
    let mut has_more_stuck = false;
    let mut stuck = Vec::new();
    // A failure shows in the list, which comes from the same service.
    for list in [undeliverable, existing].into_iter().flatten() {
        has_more_stuck |= list.next.is_some();
        stuck.extend(list.rows(&page));
    }
    let (next, shown) =
        list.as_ref().map_or((None, 0), |list| (list.next.as_deref(), list.exchange_orders.len()));
    let sorted = Sorted::new("/exchange-orders", &filter.fields(), &filter.after, next);
    let sorted = sorted.count(shown, "exchange order", "exchange orders");
    let list = Listed::new(list)?.map(|list| list.rows(&page));
    html(&ExchangeOrdersPage { page, filter, stuck, has_more_stuck, list, sorted })
}

const PATH: &str = "v1/exchange_orders";

/// The first page without a filter begins with the exchange orders that need an operator.
async fn load_stuck(
    signed_in: &SignedIn,
    merchant: Option<&str>,
    filter: &Filter,
    state: &str,
) -> Result<ExchangeOrderPage, ApiError> {
    if !filter.is_empty() {
        return Ok(ExchangeOrderPage::default());
    }
    let query = [("state", state), ("limit", "20")];
    load(signed_in, Service::Exchange, merchant, PATH, &query).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_sentence() {
        for (state, _) in STATES {
            assert!(state_sentence(state).ends_with('.'), "{state}");
        }
        assert_eq!(state_sentence("new"), "");
    }

    #[test]
    fn a_page_of_the_list_keeps_the_filter() {
        let filter =
            Filter { merchant: "acme".into(), state: "placed".into(), ..Filter::default() };
        let sorted = Sorted::new("/exchange-orders", &filter.fields(), "", Some("7"));
        let next = "/exchange-orders?merchant=acme&state=placed&after=7".to_owned();
        assert_eq!(sorted.next, Some(("Older", next)));
        assert!(!filter.is_empty() && Filter::default().is_empty());
    }

    #[test]
    fn an_identifier_is_encoded_in_the_url() {
        assert_eq!(url("acme", "A/1"), "/merchants/acme/exchange-orders/A%2F1");
    }
}
