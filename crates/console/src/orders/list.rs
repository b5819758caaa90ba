//! The list of orders.

use actix_web::{get, web};
use api::orders::StoredOrder;
use pages::{api::Service, form::Fields, path, text::money};

use super::document::{Customer, Document};
use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, Kind},
    list::List,
    markup::{Markup, badge, link, or_dash, text},
    states::order_tone,
    table::Table,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_orders);
}

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT,
    Condition::new("order", "Order begins with", Kind::Text("1001")).sent_as("identifier_prefix"),
    Condition::new("email", "E-mail", Kind::Text("ada@shopper.example")).sent_as("customer_email"),
    Condition::text("line", "Line").sent_as("line_identifier"),
];

static LIST: List = List {
    has_chips: true,
    pages: ["First", "More"],
    ..List::new(
        Section::Orders,
        ("/orders", "Orders"),
        (Service::OrderIntake, "v1/orders"),
        CONDITIONS,
        [
            "There is no order yet. One appears here when the merchant's system sends it.",
            "No order matches this filter.",
        ],
    )
};

/// An order with its document.
struct ListedOrder {
    stored: StoredOrder,
    document: Document,
}

#[get("/orders")]
async fn list_orders(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (view, orders) =
        LIST.load::<StoredOrder>(&signed_in, &query, order_of(&signed_in, &query)).await?;
    let with_document = |stored: StoredOrder| {
        let document = serde_json::from_str(stored.document.get()).unwrap_or_default();
        ListedOrder { stored, document }
    };
    let orders: Vec<_> = orders.into_iter().map(with_document).collect();
    let page = signed_in.page(LIST.section);
    let table = order_table(&orders, &page);
    view.show(page, table)
}

/// The orders of one merchant are the newest first. Other lists have no index in this order.
fn order_of(signed_in: &SignedIn, query: &Fields) -> &'static [(&'static str, &'static str)] {
    let is_of_one = signed_in.person.merchant.is_some() || !query.text("merchant").is_empty();
    let is_filtered = ["order", "email", "line"].iter().any(|name| !query.text(name).is_empty());
    if is_of_one && !is_filtered { &[("sort", "newest")] } else { &[] }
}

fn order_table(orders: &[ListedOrder], page: &Page) -> Table {
    Table::of(LIST.title, orders)
        .wrapped_head("Order", |ListedOrder { stored, .. }| {
            let url = path!("merchants", stored.merchant.as_str(), "orders", stored.identifier);
            link(format!("/{url}"), &stored.identifier)
        })
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.stored.merchant))
        .cell("State", |it| badge(order_tone(&it.stored.status), &it.stored.status))
        .wrapped("Shopper", |it| or_dash(it.document.customer.as_ref().map(shopper)))
        .classed("number nowrap", "Total", |ListedOrder { document, .. }| {
            text(money(document.total_amount_cents, &document.currency))
        })
        .cell("Ordered", |it| page.time(it.stored.created_at))
        .cell("Received", |it| page.time(it.stored.received_at))
        .table()
}

fn shopper(customer: &Customer) -> Markup {
    let name = customer.name();
    // The identifier may be the address.
    let email = customer.email().filter(|email| *email != name);
    text(name).below_some(email.map(|email| text(email).classed("small muted")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn stored(document: &str) -> ListedOrder {
        let text = format!(
            r#"{{"merchant": "acme", "identifier": "A/1", "status": "Cancelled",
                "created_at": "2026-11-16T08:00:00Z", "updated_at": "2026-11-16T08:00:00Z",
                "received_at": "2026-11-16T08:00:00Z", "document": {document}}}"#
        );
        let stored = serde_json::from_str(&text).unwrap();
        ListedOrder { stored, document: serde_json::from_str(document).unwrap_or_default() }
    }

    #[test]
    fn an_order_has_its_shopper_and_its_total() {
        let document = r#"{"currency": "EUR", "total_amount_cents": 4995,
            "customer": {"first_name": "Ada", "last_name": "<L>", "email": "ada@shop.test"}}"#;
        let signed_in = fixtures::signed_in("support", None, &json!({}));
        let orders = [stored(document), stored("[]")];
        let table = order_table(&orders, &fixtures::page(&signed_in)).to_string();
        for part in [
            r#"href="/merchants/acme/orders/A%2F1""#,
            r#"Ada &#60;L&#62;<br><span class="small muted">ada@shop.test</span>"#,
            ">49.95 EUR</td>",
            r#"<span class="badge warn">Cancelled</span>"#,
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }

    #[test]
    fn only_all_orders_of_a_merchant_are_sorted_by_time() {
        let fields = |text: &str| serde_html_form::from_str::<Fields>(text).unwrap();
        let support = fixtures::signed_in("support", None, &json!({}));
        let own = fixtures::signed_in("merchant-viewer", Some("acme"), &json!({}));
        let newest: &[_] = &[("sort", "newest")];
        assert_eq!(order_of(&own, &fields("")), newest);
        assert_eq!(order_of(&support, &fields("merchant=acme&order=")), newest);
        assert!(order_of(&support, &fields("")).is_empty());
        assert!(order_of(&own, &fields("email=a@b.c")).is_empty());
    }
}
