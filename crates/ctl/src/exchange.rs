//! `backhaul exchange`: exchange orders and variants.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api_client::ApiClient;
use crate::connection::MerchantCommand;
use crate::delivery_services::is_not_found;
use crate::output::{
    Column, computed, details, items, join, table, text_at, time, value, with_shown,
};
use crate::service_urls::EXCHANGE;

const COLUMNS: &[Column] = &[
    value("order", "/original_order_id"),
    value("merchant", "/merchant").whole(),
    value("rma", "/rma_identifier").whole().leave_out(3),
    time("confirmed", "/received_at").leave_out(2),
    value("state", "/state"),
    value("exchange order", "/exchange_order_identifier").whole().wide(),
    computed("units", |exchange| items(exchange, "/items").len().to_string()).leave_out(1),
];

const FIELDS: &[Column] = &[
    value("order", "/original_order_id"),
    value("earlier orders", "/earlier_orders"),
    value("rma", "/rma_identifier"),
    value("state", "/state"),
    value("exchange order", "/exchange_order_identifier"),
    computed("units", |exchange| units(exchange, "/items", "/refund_type")),
    computed("failed units", |exchange| units(exchange, "/failed", "/reason")),
    value("stock check", "/stock_check"),
    value("price check", "/price_check"),
    value("check detail", "/check_detail"),
    value("transaction", "/transaction_id"),
    value("delivery", "/delivery"),
    time("confirmed", "/received_at"),
    time("ordered", "/ordered_at"),
    time("settled", "/settled_at"),
    value("abandoned by", "/abandonment/by"),
    value("note", "/abandonment/note"),
    value("message", "/message"),
];

const OTHER_RETURN_COLUMNS: &[Column] = &[
    value("other returns", "/rma_identifier"),
    value("state", "/state"),
    time("confirmed", "/received_at"),
];

const VARIANT_COLUMNS: &[Column] = &[
    value("sku", "/sku"),
    value("title", "/title"),
    computed("attributes", |variant| {
        let attributes = items(variant, "/attributes").iter();
        join(attributes.map(|it| format!("{} {}", text_at(it, "/name"), text_at(it, "/value"))))
    }),
    value("cents", "/unit_price_amount_cents"),
    value("in stock", "/quantity_in_stock"),
];

const UNAVAILABLE_FIELDS: &[Column] =
    &[value("available", "/available"), value("reason", "/reason"), value("detail", "/detail")];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List exchange orders and returns without one, newest first
    #[command(after_help = "\
Examples:
  backhaul exchange list --state undeliverable --all-merchants
  backhaul exchange list --rma RMA-1")]
    List(List),
    /// Show the exchange order of an order
    #[command(after_help = "\
Examples:
  backhaul exchange show 1001 --merchant acme
  backhaul exchange show RMA-1 --merchant acme")]
    Show {
        /// Order whose units were returned, the exchange order, or the RMA
        identifier: String,
    },
    /// Give up an undeliverable exchange order; its units are refunded instead
    #[command(after_help = "\
Examples:
Replay the delivery first; show prints its ID:
  backhaul exchange show 1001 --merchant acme
  backhaul deliveries replay DELIVERY
If that fails, abandon the exchange order permanently:
  backhaul exchange abandon 1001 --note 'Sold out, says Acme' --merchant acme")]
    Abandon {
        /// Order whose units were returned
        original_order: String,
        /// Reason; it is kept with your name
        #[arg(long)]
        note: String,
    },
    /// Request the variants of a product from the merchant, as the portal does
    #[command(after_help = "\
Example:
  backhaul exchange variants BOOT-M --merchant acme")]
    Variants {
        /// The variant_identifier of an order line
        variant_identifier: String,
    },
}

#[derive(Args, Serialize)]
pub(crate) struct List {
    /// Only exchange orders of this order
    #[arg(long, value_name = "ORDER")]
    #[serde(rename = "original_order_id")]
    original_order: Option<String>,
    /// Only the exchange order of this return
    #[arg(long, value_name = "RMA")]
    #[serde(rename = "rma_identifier")]
    rma: Option<String>,
    /// Only the exchange order with this identifier
    #[arg(long, value_name = "ORDER")]
    #[serde(rename = "exchange_order_identifier")]
    exchange_order: Option<String>,
    /// Only the exchange order with this transaction of its payment
    #[arg(long, value_name = "ID")]
    #[serde(rename = "transaction_id")]
    transaction: Option<Uuid>,
    /// Only exchange orders in this state
    #[arg(long, value_parser = [
        "waiting", "sending", "placed", "undeliverable", "already_exists", "abandoned",
        "already_exchanged", "not_exchangeable", "unreadable",
    ])]
    state: Option<String>,
    /// Search all merchants, as the operator
    #[arg(long)]
    #[serde(skip)]
    all_merchants: bool,
    /// Maximum number of exchange orders
    #[arg(long, value_name = "N", default_value = "50")]
    #[serde(skip)]
    limit: NonZeroUsize,
}

impl List {
    /// The columns that show that a row is the one that was searched for.
    fn searched_columns(&self) -> &'static [&'static str] {
        match (&self.exchange_order, &self.rma) {
            (Some(_), _) => &["exchange order"],
            (None, Some(_)) => &["rma"],
            (None, None) => &[],
        }
    }
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let format = connection.format();
    let all_merchants = matches!(&command, Command::List(list) if list.all_merchants);
    let exchange = connection.connect_to(EXCHANGE, all_merchants).await?;
    match command {
        Command::List(list) => {
            let path = ["v1", "exchange_orders"];
            let items = "exchange_orders";
            let orders = exchange.list(&path, items, &list, list.limit.get()).await?;
            let columns = with_shown(COLUMNS, list.searched_columns());
            format.print_table(&orders, "/exchange_orders", &columns)
        }
        Command::Show { identifier } => {
            format.print(&find(&exchange, &identifier).await?, describe)
        }
        Command::Abandon { original_order, note } => {
            let path = ["v1", "exchange_orders", &original_order, "abandon"];
            format.print(&exchange.post(&path, &json!({ "note": note })).await?, describe)
        }
        Command::Variants { variant_identifier } => {
            let offer = exchange.get(&["v1", "variants", &variant_identifier]).await?;
            if offer.get("available") == Some(&json!(true)) {
                format.print_table(&offer, "/variants", VARIANT_COLUMNS)
            } else {
                format.print_details(&offer, UNAVAILABLE_FIELDS)
            }
        }
    }
}

/// The exchange order of an order, with an identifier of its own, or of a return.
async fn find(exchange: &ApiClient, identifier: &str) -> anyhow::Result<Value> {
    let get = async |order: &str| exchange.get(&["v1", "exchange_orders", order]).await;
    let not_found = match get(identifier).await {
        Err(error) if is_not_found(&error) => error,
        response => return response,
    };
    for filter in ["exchange_order_identifier", "rma_identifier"] {
        let path = ["v1", "exchange_orders"];
        let query = [(filter, identifier)];
        let found = exchange.list(&path, "exchange_orders", &query, 1).await?;
        let order = found.pointer("/exchange_orders/0/original_order_id");
        if let Some(order) = order.and_then(Value::as_str) {
            return get(order).await;
        }
    }
    Err(not_found)
}

fn describe(exchange: &Value) -> String {
    let fields = details(exchange, FIELDS);
    let others = items(exchange, "/other_returns");
    if others.is_empty() {
        return fields;
    }
    format!("{fields}\n{}", table(others, OTHER_RETURN_COLUMNS))
}

/// Each unit with one of its fields.
fn units(exchange: &Value, pointer: &str, field: &str) -> String {
    join(items(exchange, pointer).iter().map(|unit| {
        let line = text_at(unit, "/order_line_item_identifier");
        format!("{line}:{} {}", text_at(unit, "/unit"), text_at(unit, field))
    }))
}
