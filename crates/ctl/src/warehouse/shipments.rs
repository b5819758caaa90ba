//! `backhaul shipment`: what leaves a warehouse.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};
use platform::Timestamp;
use serde::Deserialize;

use crate::operator::Listing;
use crate::output::{properties, table, time};
use crate::party::Party;
use crate::places::WAREHOUSE;

/// See what left a warehouse, and in which messages the merchant was told
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    party: Party,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List outbound shipments, sorted by number
    List {
        /// How many at the most
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
    },
    /// Show an outbound shipment and its messages
    #[command(after_help = "\
Examples:
  backhaul shipment show ASN-1001
  backhaul deliveries list --lane asn:ASN-1001")]
    Show { asn_number: String },
}

#[derive(Deserialize)]
struct Page {
    outbound_shipments: Vec<Summary>,
}

#[derive(Deserialize)]
struct Summary {
    asn_number: String,
    shipment_type: String,
    status: String,
    ship_date: Timestamp,
    units: u64,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct Details {
    #[serde(flatten)]
    summary: Summary,
    shipment_identifier: String,
    channel: String,
    created_at: Timestamp,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    asn_number: String,
    units: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { party, command } = arguments;
    let format = party.format();
    let notifier = party.connect(WAREHOUSE).await?;
    match command {
        Command::List { limit } => {
            let listing = Listing {
                path: &["v1", "outbound_shipments"],
                merchant: None,
                items: "outbound_shipments",
                cursor: "after",
                most: limit.get(),
            };
            format.show(notifier.list(listing).await?, tabulate)
        }
        Command::Show { asn_number } => {
            format.show(notifier.get(&["v1", "outbound_shipments", &asn_number]).await?, describe)
        }
    }
}

fn tabulate(page: &Page) -> String {
    let row = |shipment: &Summary| {
        [
            shipment.asn_number.clone(),
            shipment.shipment_type.clone(),
            shipment.status.clone(),
            time(&shipment.ship_date),
            shipment.units.to_string(),
            time(&shipment.updated_at),
        ]
    };
    let headings = ["asn", "type", "status", "ships", "units", "changed"];
    table(headings, page.outbound_shipments.iter().map(row))
}

fn describe(details: &Details) -> String {
    let Details { summary, shipment_identifier, channel, created_at, messages } = details;
    let mut text = properties([
        ("asn", summary.asn_number.clone()),
        ("type", summary.shipment_type.clone()),
        ("status", summary.status.clone()),
        ("ships", time(&summary.ship_date)),
        ("shipment", shipment_identifier.clone()),
        ("channel", channel.clone()),
        ("units", summary.units.to_string()),
        ("reported", time(created_at)),
        ("changed", time(&summary.updated_at)),
    ]);
    text.push('\n');
    let row = |message: &Message| [message.asn_number.clone(), message.units.to_string()];
    text + &table(["message", "units"], messages.iter().map(row))
}
