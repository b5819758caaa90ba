//! `backhaul orders list` and `backhaul orders show`.

use std::cmp::Reverse;
use std::num::NonZeroUsize;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::connection::ConnectionArgs;
use crate::output::{
    Column, computed, details, items, money, table, text_at, time, value, with_shown,
};
use crate::service_urls::ORDERS;

const COLUMNS: &[Column] = &[
    value("order", "/identifier"),
    time("created", "/created_at").leave_out(2),
    value("merchant", "/merchant").whole().wide(),
    value("status", "/document/status"),
    value("customer", "/document/customer/email").leave_out(3),
    computed("units", units).leave_out(1),
    computed("total", |order| amount(order, "total")),
    time("received", "/received_at").wide(),
];

const FIELDS: &[Column] = &[
    value("order", "/identifier"),
    value("merchant", "/merchant"),
    value("status", "/document/status"),
    value("customer", "/document/customer/email"),
    computed("total", |order| amount(order, "total")),
    computed("products", |order| amount(order, "product")),
    computed("tax", |order| amount(order, "tax")),
    computed("discount", |order| amount(order, "discount")),
    computed("shipping", |order| amount(order, "shipping")),
    value("tags", "/document/tags"),
    time("created", "/created_at"),
    time("updated", "/updated_at"),
    time("received", "/received_at"),
];

const LINE_COLUMNS: &[Column] = &[
    value("line", "/identifier"),
    computed("product", |line| match text_at(line, "/sku").as_str() {
        "-" => text_at(line, "/upc"),
        sku => sku.to_owned(),
    }),
    value("title", "/title").leave_out(1),
    value("ordered", "/quantity"),
    value("shipped", "/quantity_shipped"),
    value("canceled", "/quantity_canceled"),
    value("shipped date", "/shipped_date").wide(),
    value("tags", "/tags").wide(),
];

const REFUND_COLUMNS: &[Column] = &[
    value("refund", "/identifier"),
    time("created", "/created_at"),
    value("rma", "/rma_identifier"),
    value("cents", "/total_refund_amount_cents"),
];

/// The orders of a merchant, or the order with an identifier, e-mail address or line.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    filter: Filter,
    /// Search all merchants, as the operator; needs --order, --email or --line
    #[arg(long, requires = "Filter")]
    all_merchants: bool,
    /// Maximum number of orders
    #[arg(long, value_name = "N", default_value = "50")]
    limit: NonZeroUsize,
}

/// A filter for orders.
#[derive(Args, Serialize)]
struct Filter {
    /// Only orders whose identifier starts with this text
    #[arg(long, value_name = "TEXT")]
    #[serde(rename = "identifier_prefix")]
    order: Option<String>,
    /// Only orders of the shopper with this e-mail address
    #[arg(long, conflicts_with_all = ["order", "line"])]
    #[serde(rename = "customer_email")]
    email: Option<String>,
    /// Only orders with this line
    #[arg(long, value_name = "LINE", conflicts_with = "order")]
    #[serde(rename = "line_identifier")]
    line: Option<String>,
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    sort: Option<&'static str>,
}

/// One order, as the merchant sent it.
#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Identifier of the order
    order: String,
}

impl List {
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        let Filter { order, email, line, sort } = &mut self.filter;
        // The service sorts only all orders of a merchant by time.
        let is_search = order.is_some() || email.is_some() || line.is_some();
        *sort = (!is_search).then_some("newest");
        let client = self.connection.connect_to(ORDERS, self.all_merchants).await?;
        let path = ["v1", "orders"];
        let mut found = client.list(&path, "orders", &self.filter, self.limit.get()).await?;
        if let Some(Value::Array(orders)) = found.get_mut("orders") {
            orders.sort_by_key(|order| Reverse(text_at(order, "/created_at")));
        }
        // `orders show` needs the merchant.
        let shown: &[&str] = if self.all_merchants { &["merchant"] } else { &[] };
        self.connection.format().print_table(&found, "/orders", &with_shown(COLUMNS, shown))
    }
}

impl Show {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let client = self.connection.connect(ORDERS).await?;
        let order = client.get(&["v1", "orders", &self.order]).await?;
        self.connection.format().print(&order, describe)
    }
}

fn describe(order: &Value) -> String {
    let lines = table(items(order, "/document/items"), LINE_COLUMNS);
    let mut text = format!("{}\n{lines}", details(order, FIELDS));
    let refunds = items(order, "/document/refunds");
    if !refunds.is_empty() {
        text.push('\n');
        text.push_str(&table(refunds, REFUND_COLUMNS));
    }
    text
}

fn units(order: &Value) -> String {
    let lines = items(order, "/document/items").iter();
    lines.filter_map(|line| line.get("quantity")?.as_i64()).sum::<i64>().to_string()
}

fn amount(order: &Value, name: &str) -> String {
    let cents = order.pointer(&format!("/document/{name}_amount_cents")).and_then(Value::as_i64);
    cents
        .map_or_else(|| "-".to_owned(), |cents| money(cents, &text_at(order, "/document/currency")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn order() -> Value {
        json!({
            "merchant": "acme", "identifier": "1001", "status": "Shipped",
            "created_at": "2026-11-15T03:48:13Z", "updated_at": "2026-11-16T03:48:13Z",
            "received_at": "2026-11-16T03:49:00Z",
            "document": {
                "identifier": "1001", "status": "Shipped", "currency": "USD",
                "customer": { "email": "ada@shopper.example" }, "tags": ["vip"],
                "total_amount_cents": 4020, "product_amount_cents": 4000, "tax_amount_cents": 20,
                "discount_amount_cents": 0, "shipping_amount_cents": 0,
                "items": [{ "identifier": "LINE-1", "sku": "SHIRT-M", "title": "Shirt", "quantity": 3,
                    "quantity_shipped": 2, "quantity_canceled": 1 }],
                "refunds": [{ "identifier": "R1", "total_refund_amount_cents": 2000,
                    "created_at": "2026-11-16T01:00:00Z", "rma_identifier": "RMA-1" }],
            },
        })
    }

    #[test]
    fn a_long_identifier_stays_whole_and_the_merchant_is_named() {
        let mut order = order();
        order["merchant"] = json!("acme-outdoor");
        order["identifier"] = json!("HO8ROZOLB3-0000000000000001");
        expect![[r#"
            ORDER                        MERCHANT      STATUS   CUSTOMER           TOTAL
            HO8ROZOLB3-0000000000000001  acme-outdoor  Shipped  ada@shopper.exam…  40.20 USD
        "#]]
        .assert_eq(&table([&order], &with_shown(COLUMNS, &["merchant"])));
    }

    #[test]
    fn orders_are_listed_and_shown() {
        expect![[r#"
            ORDER  CREATED           STATUS   CUSTOMER             UNITS  TOTAL
            1001   2026-11-15 03:48  Shipped  ada@shopper.example  3      40.20 USD
        "#]]
        .assert_eq(&table([&order()], COLUMNS));
        expect![[r#"
            order     1001
            merchant  acme
            status    Shipped
            customer  ada@shopper.example
            total     40.20 USD
            products  40.00 USD
            tax       0.20 USD
            discount  0.00 USD
            shipping  0.00 USD
            tags      vip
            created   2026-11-15 03:48:13Z
            updated   2026-11-16 03:48:13Z
            received  2026-11-16 03:49:00Z

            LINE    PRODUCT  TITLE  ORDERED  SHIPPED  CANCELED
            LINE-1  SHIRT-M  Shirt  3        2        1

            REFUND  CREATED           RMA    CENTS
            R1      2026-11-16 01:00  RMA-1  2000
        "#]]
        .assert_eq(&describe(&order()));
    }
}
