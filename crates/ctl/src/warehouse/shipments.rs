//! `backhaul shipment`: outbound shipments.

use std::num::NonZeroUsize;

use clap::Subcommand;
use serde_json::Value;

use crate::api_client::NO_QUERY;
use crate::connection::MerchantCommand;
use crate::output::{Column, details, items, table, time, value};
use crate::service_urls::WAREHOUSE;

const COLUMNS: &[Column] = &[
    value("asn", "/asn_number"),
    value("type", "/shipment_type"),
    value("status", "/status"),
    time("ships", "/ship_date"),
    value("units", "/units"),
    time("changed", "/updated_at"),
];

const FIELDS: &[Column] = &[
    value("asn", "/asn_number"),
    value("type", "/shipment_type"),
    value("status", "/status"),
    time("ships", "/ship_date"),
    value("shipment", "/shipment_identifier"),
    value("channel", "/channel"),
    value("units", "/units"),
    time("reported", "/created_at"),
    time("changed", "/updated_at"),
];

const MESSAGE_COLUMNS: &[Column] = &[value("message", "/asn_number"), value("units", "/units")];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List outbound shipments, sorted by number
    #[command(after_help = "\
Example:
  backhaul shipment list --merchant acme")]
    List {
        /// Maximum number of shipments
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
    },
    /// Show an outbound shipment and its messages
    #[command(after_help = "\
Examples:
  backhaul shipment show ASN-1001
  backhaul deliveries list --ordering-key asn:ASN-1001")]
    Show {
        /// Number of the ASN
        asn_number: String,
    },
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let format = connection.format();
    let warehouse = connection.connect(WAREHOUSE).await?;
    match command {
        Command::List { limit } => {
            let path = ["v1", "outbound_shipments"];
            let items = "outbound_shipments";
            let shipments = warehouse.list(&path, items, NO_QUERY, limit.get()).await?;
            format.print_table(&shipments, "/outbound_shipments", COLUMNS)
        }
        Command::Show { asn_number } => {
            let path = ["v1", "outbound_shipments", &asn_number];
            format.print(&warehouse.get(&path).await?, describe)
        }
    }
}

fn describe(shipment: &Value) -> String {
    let messages = table(items(shipment, "/messages"), MESSAGE_COLUMNS);
    format!("{}\n{messages}", details(shipment, FIELDS))
}
