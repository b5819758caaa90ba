//! The messages to the merchant about an order: about its returns, its exchange order and its drop shipments.

use std::cmp::Reverse;

use api::delivery::DeliveryView;
use futures_util::future::{join, join_all};
use pages::api::Service;

use crate::{
    Page, PageError, SignedIn,
    deliveries::{Entry, Found, Search},
    markup::{badge, link},
    record_list::{Records, query_string},
    states::Shown as _,
    table::Table,
};

/// The newest returns whose messages are loaded.
const MAX_RETURNS: usize = 10;
/// The messages that the page shows.
const MAX_SHOWN: usize = 20;
const SHOWN: &str = "20";

pub(super) struct Messages {
    pub(super) table: Table,
    pub(super) unavailable: Vec<Service>,
    /// The messages about the order and its returns.
    pub(super) url: String,
}

impl Messages {
    /// The newest messages. `returns` are the returns of the order, newest first.
    pub(super) async fn load(
        signed_in: &SignedIn,
        merchant: &str,
        order: &str,
        returns: &[String],
        page: &Page,
    ) -> Result<Self, PageError> {
        let about_order = vec![("merchant", merchant.to_owned()), ("text", order.to_owned())];
        let of_return = async |rma: &String| {
            let key = format!("rma:{rma}");
            let query = [("merchant", merchant), ("ordering_key", key.as_str()), ("limit", SHOWN)];
            let api = &signed_in.api;
            let list: Result<Records<DeliveryView>, _> =
                api.get(Service::RmaEngine, "v1/deliveries", &query).await;
            list.unwrap_or_default().records
        };
        let (found, of_returns) = join(
            Search::new(about_order).limit(MAX_SHOWN).load(signed_in),
            join_all(returns.iter().take(MAX_RETURNS).map(of_return)),
        )
        .await;
        // If rma-engine does not respond, the search names it.
        let Found { mut deliveries, unavailable, .. } = found?;
        let entry = |delivery| Entry { service: Service::RmaEngine, delivery };
        deliveries.extend(of_returns.into_iter().flatten().map(entry));
        let query = query_string(&[("merchant", merchant), ("text", order)]);
        let url = format!("/deliveries?{query}");
        Ok(Self { table: table(deliveries, page), unavailable, url })
    }
}

/// The newest of the messages.
fn table(mut deliveries: Vec<Entry>, page: &Page) -> Table {
    deliveries.sort_by_key(|it| Reverse(it.delivery.id));
    deliveries.truncate(MAX_SHOWN);
    Table::of("Messages about the order", &deliveries)
        .cell("State", |it| badge(it.delivery.tone(), it.delivery.state))
        .head("Event", |it| link(it.url(), &it.delivery.event))
        .ordering_key()
        .response(page)
        .table()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn the_newest_messages_are_shown() {
        let delivery = |number: usize| {
            let id = format!("00000000-0000-7000-8000-{number:012}");
            let event = format!("rma.event_{number}_");
            let delivery = fixtures::delivery(&json!({ "id": id, "event": event }));
            Entry { service: Service::RmaEngine, delivery }
        };
        let signed_in = fixtures::signed_in("support", None, &json!({}));
        let table = table((1..=25).map(delivery).collect(), &fixtures::page(&signed_in));
        let html = table.to_string();
        let first = html.find("rma.event_25_").unwrap();
        assert!(first < html.find("rma.event_6_").unwrap());
        assert!(!html.contains("rma.event_5_"), "{html}");
    }
}
