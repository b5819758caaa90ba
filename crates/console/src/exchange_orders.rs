//! Exchange orders of one merchant or, for staff, of all. Those that need an operator come first.

mod abandon;
mod details;

use actix_web::{get, web};
use api::exchange::{ExchangeOrderView, State};
use askama::Template;
use futures_util::future::join3;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};

use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, or_any},
    html,
    list::{List, ListView},
    markup::{link, text, text_or_dash},
    record_list::{Listed, Records, load, merchant_filter},
    states::Shown as _,
    table::Table,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_exchange_orders).configure(details::routes).configure(abandon::routes);
}

pub(crate) const PATH: &str = "v1/exchange_orders";

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT,
    Condition::choice("state", "State", || {
        or_any(STATES.map(|(state, _)| (state.as_str(), state.words())))
    }),
    Condition::text("original_order_id", "Original order"),
    Condition::text("exchange_order_identifier", "Exchange order"),
];

static LIST: List = List {
    has_chips: true,
    sorted_nouns: Some(("exchange order", "exchange orders")),
    ..List::new(
        Section::ExchangeOrders,
        ("/exchange-orders", "Exchange orders"),
        (Service::Exchange, PATH),
        CONDITIONS,
        [
            "There is no exchange order yet. One is placed when a shopper returns a unit and chooses another \
             variant or a gift card.",
            "No exchange order matches this filter.",
        ],
    )
};

/// The states of an exchange order, and the sentence for each.
const STATES: [(State, &str); 9] = [
    (
        State::Undeliverable,
        "The merchant did not accept the exchange order. Replay the delivery, or abandon the exchange order so that the units are refunded.",
    ),
    (
        State::AlreadyExists,
        "The merchant says that it has an exchange order for this order already. Replay the delivery, or abandon the exchange order so that the units are refunded.",
    ),
    (State::Waiting, "The return is confirmed. The exchange order is placed next."),
    (State::Sending, "The exchange order is being delivered to the merchant."),
    (State::Placed, "The merchant accepted the exchange order."),
    (State::Abandoned, "An operator abandoned the exchange order. The units are refunded."),
    (State::AlreadyExchanged, "The order had an exchange order already. The units are refunded."),
    (
        State::NotExchangeable,
        "Every chosen variant was out of stock or had another price. The units are refunded.",
    ),
    (State::Unreadable, "The stored confirmation cannot be read and waits for an operator."),
];

fn state_sentence(state: State) -> &'static str {
    STATES.iter().find(|(listed, _)| *listed == state).map_or("", |(_, sentence)| sentence)
}

fn url(merchant: &str, original_order: &str) -> String {
    format!("/{}", path!("merchants", merchant, "exchange-orders", original_order))
}

/// The exchange orders of a list, an order or a return.
pub(crate) fn exchange_order_table(
    label: &str,
    orders: &[ExchangeOrderView],
    page: &Page,
) -> Table {
    Table::of(label, orders)
        .head("Original order", |it| {
            link(url(&it.merchant, &it.original_order_id), &it.original_order_id)
        })
        .cell("State", |it| {
            let settled = it.settled_at.map(|at| page.time(at).classed("small muted"));
            it.state.badge().and_some(settled)
        })
        .cell("Merchant", |it| link(format!("/{}", path!("merchants", it.merchant)), &it.merchant))
        .cell("Return", |it| {
            let url = path!("merchants", it.merchant, "returns", it.rma_identifier);
            link(format!("/{url}"), &it.rma_identifier)
        })
        .wrapped("Exchange order", |it| text_or_dash(it.exchange_order_identifier.as_ref()))
        .number("Units", |it| text(it.items.len() + it.failed.len()))
        .cell("Confirmed", |it| page.time(it.received_at))
        .table()
}

#[derive(Template)]
#[template(path = "exchange_orders.html")]
struct ExchangeOrdersPage {
    page: Page,
    view: ListView,
    table: Table,
    /// Exchange orders that need an operator, without a filter.
    stuck: Table,
    has_more_stuck: bool,
}

#[get("/exchange-orders")]
async fn list_exchange_orders(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (loaded, undeliverable, existing) = join3(
        LIST.load::<ExchangeOrderView>(&signed_in, &query, &[]),
        load_stuck(&signed_in, &query, State::Undeliverable),
        load_stuck(&signed_in, &query, State::AlreadyExists),
    )
    .await;
    let (mut view, orders) = loaded?;
    view.is_unfiltered = !is_filtered(&query);
    let page = signed_in.page(LIST.section);
    let mut has_more_stuck = false;
    let mut stuck = Vec::new();
    // A failure shows in the list, which comes from the same service.
    for list in [undeliverable, existing].into_iter().flatten() {
        has_more_stuck |= list.next.is_some();
        stuck.extend(list.records);
    }
    html(&ExchangeOrdersPage {
        table: exchange_order_table(LIST.title, &orders, &page),
        stuck: exchange_order_table("Exchange orders that wait for an operator", &stuck, &page),
        has_more_stuck,
        page,
        view,
    })
}

/// Whether the list has another condition than the merchant.
fn is_filtered(query: &Fields) -> bool {
    let names = CONDITIONS.iter().skip(1).map(|condition| condition.name);
    names.chain(["after"]).any(|name| !query.text(name).is_empty())
}

/// The first page without a filter begins with the exchange orders that need an operator.
async fn load_stuck(
    signed_in: &SignedIn,
    query: &Fields,
    state: State,
) -> Result<Records<ExchangeOrderView>, ApiError> {
    let merchant = query.text("merchant");
    match merchant_filter(signed_in, merchant) {
        Ok(merchant) if !is_filtered(query) => {
            let query = [("state", state.as_str()), ("limit", "20")];
            load(signed_in, Service::Exchange, merchant, PATH, &query).await
        }
        _ => Ok(Records::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_sentence() {
        for (state, _) in STATES {
            assert!(state_sentence(state).ends_with('.'), "{state}");
        }
    }

    #[test]
    fn an_identifier_is_encoded_in_the_url() {
        assert_eq!(url("acme", "A/1"), "/merchants/acme/exchange-orders/A%2F1");
    }

    #[test]
    fn those_that_wait_for_an_operator_are_shown_without_a_filter() {
        let query = |name: &str| [(name.to_owned(), "x".to_owned())].into_iter().collect();
        assert!(!is_filtered(&query("merchant")));
        assert!(is_filtered(&query("state")) && is_filtered(&query("after")));
    }
}
