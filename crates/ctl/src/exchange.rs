//! `backhaul exchange`: what is sent to shoppers instead of what they send back.

use clap::{Args, Subcommand};
use domain::exchange::OfferedVariant;
use domain::returns::UnitId;
use platform::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::output::{or_dash, properties, table, time, yes_or_no};
use crate::party::Party;
use crate::places::EXCHANGE;

/// See exchange orders, end those that cannot go on, and see what merchants offer instead of a product
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    party: Party,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List exchange orders, and the returns that got none, newest first
    #[command(after_help = "\
Examples:
  backhaul exchange list --state undeliverable --merchant acme
  backhaul exchange list --rma RMA-1")]
    List(List),
    /// Show the exchange order of an order
    Show {
        /// The order whose units came back
        original_order: String,
    },
    /// End an exchange order that the merchant did not take: its units are refunded instead
    #[command(after_help = "\
Replay it first, while its delivery is there; show names it:
  backhaul exchange show 1001 --merchant acme
  backhaul deliveries replay DELIVERY
Then, for good:
  backhaul exchange abandon 1001 --merchant acme")]
    Abandon {
        /// The order whose units came back
        original_order: String,
    },
    /// Ask the merchant for the variants of a product, as the portal does
    Variants {
        /// The variant_identifier of an order's line
        variant_identifier: String,
    },
}

#[derive(Args)]
struct List {
    /// Of this order
    #[arg(long, value_name = "ORDER")]
    original_order: Option<String>,
    /// For this return
    #[arg(long, value_name = "RMA")]
    rma: Option<String>,
    /// With this name at the merchant
    #[arg(long, value_name = "ORDER")]
    exchange_order: Option<String>,
    #[arg(long, value_parser = [
        "waiting", "sending", "placed", "undeliverable", "abandoned", "already_exchanged",
        "out_of_stock", "unreadable",
    ])]
    state: Option<String>,
    /// Maximum number of entries, up to 200
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u16,
}

impl List {
    fn query(self) -> Vec<(&'static str, String)> {
        let given = [
            ("original_order_id", self.original_order),
            ("rma_identifier", self.rma),
            ("exchange_order_identifier", self.exchange_order),
            ("state", self.state),
            ("limit", Some(self.limit.to_string())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[derive(Deserialize)]
struct Page {
    exchange_orders: Vec<Exchange>,
}

#[derive(Deserialize)]
struct Exchange {
    original_order_id: String,
    rma_identifier: String,
    state: String,
    exchange_order_identifier: Option<String>,
    delivery: Option<String>,
    units: Vec<UnitId>,
    out_of_stock: Vec<UnitId>,
    stock: Option<String>,
    stock_detail: Option<String>,
    received_at: Timestamp,
    ordered_at: Option<Timestamp>,
    settled_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(flatten)]
    exchange: Exchange,
    message: Option<Value>,
    earlier_orders: Vec<String>,
    other_returns: Vec<OtherReturn>,
}

#[derive(Deserialize)]
struct OtherReturn {
    rma_identifier: String,
    state: String,
    received_at: Timestamp,
}

#[derive(Deserialize)]
struct Offer {
    available: bool,
    variants: Vec<OfferedVariant>,
    reason: Option<String>,
    detail: Option<String>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { party, command } = arguments;
    let format = party.format();
    let service = party.connect(EXCHANGE).await?;
    match command {
        Command::List(list) => {
            let found = service.search(&["v1", "exchange_orders"], &list.query()).await?;
            format.show(found, tabulate)
        }
        Command::Show { original_order } => {
            format.show(service.get(&["v1", "exchange_orders", &original_order]).await?, describe)
        }
        Command::Abandon { original_order } => {
            let path = ["v1", "exchange_orders", &original_order, "abandon"];
            format.show(service.order(&path, &[]).await?, describe)
        }
        Command::Variants { variant_identifier } => {
            format.show(service.get(&["v1", "variants", &variant_identifier]).await?, offer)
        }
    }
}

fn tabulate(page: &Page) -> String {
    let row = |exchange: &Exchange| {
        [
            exchange.original_order_id.clone(),
            exchange.rma_identifier.clone(),
            time(&exchange.received_at),
            exchange.state.clone(),
            or_dash(exchange.exchange_order_identifier.as_ref()),
            exchange.units.len().to_string(),
        ]
    };
    let headings = ["order", "rma", "confirmed", "state", "exchange order", "units"];
    table(headings, page.exchange_orders.iter().map(row))
}

fn describe(details: &Details) -> String {
    let Details { exchange, message, earlier_orders, other_returns } = details;
    let units = |units: &[UnitId]| {
        let words: Vec<_> = units.iter().map(written).collect();
        if words.is_empty() { "-".to_owned() } else { words.join(", ") }
    };
    let earlier = (!earlier_orders.is_empty()).then(|| earlier_orders.join(", "));
    let text = properties([
        ("order", exchange.original_order_id.clone()),
        ("earlier orders", or_dash(earlier)),
        ("rma", exchange.rma_identifier.clone()),
        ("state", exchange.state.clone()),
        ("exchange order", or_dash(exchange.exchange_order_identifier.as_ref())),
        ("units", units(&exchange.units)),
        ("out of stock", units(&exchange.out_of_stock)),
        ("stock", or_dash(exchange.stock.as_ref())),
        ("why", or_dash(exchange.stock_detail.as_ref())),
        ("delivery", or_dash(exchange.delivery.as_ref())),
        ("confirmed", time(&exchange.received_at)),
        ("ordered", or_dash(exchange.ordered_at.as_ref().map(time))),
        ("settled", or_dash(exchange.settled_at.as_ref().map(time))),
        ("message", or_dash(message.as_ref())),
    ]);
    if other_returns.is_empty() {
        return text;
    }
    let row = |other: &OtherReturn| {
        [other.rma_identifier.clone(), other.state.clone(), time(&other.received_at)]
    };
    let others = table(["other returns", "state", "confirmed"], other_returns.iter().map(row));
    format!("{text}\n{others}")
}

fn written(unit: &UnitId) -> String {
    format!("{}:{}", unit.order_line_item_identifier, unit.unit)
}

fn offer(offer: &Offer) -> String {
    if !offer.available {
        return properties([
            ("available", yes_or_no(false)),
            ("reason", or_dash(offer.reason.as_ref())),
            ("detail", or_dash(offer.detail.as_ref())),
        ]);
    }
    let row = |variant: &OfferedVariant| {
        let attributes = variant.attributes.iter().map(|it| format!("{} {}", it.name, it.value));
        [
            variant.sku.clone(),
            variant.title.clone(),
            attributes.collect::<Vec<_>>().join(", "),
            or_dash(variant.unit_price_amount_cents),
            or_dash(variant.quantity_in_stock),
        ]
    };
    let headings = ["sku", "title", "attributes", "cents", "in stock"];
    table(headings, offer.variants.iter().map(row))
}
