//! `backhaul receipt`: units received in a warehouse.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

use super::product;
use crate::connection::ConnectionArgs;
use crate::output::{Column, computed, time, value};
use crate::service_urls::WAREHOUSE;

const COLUMNS: &[Column] = &[
    time("received", "/received_at"),
    value("asn", "/message/asn_number"),
    value("line", "/message/line_identifier"),
    value("unit", "/message/unit_identifier"),
    computed("product", |receipt| product(receipt.get("message").unwrap_or(&Value::Null))),
    value("condition", "/message/initial_condition"),
    value("reject reason", "/message/reject_reason"),
];

/// List units received in a warehouse
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List receipts, newest first
    #[command(after_help = "\
Example:
  backhaul receipt list --asn IN-1001")]
    List(List),
}

#[derive(Args, Serialize)]
struct List {
    /// Only units of this inbound ASN
    #[arg(long, value_name = "NUMBER")]
    #[serde(rename = "asn_number")]
    asn: Option<String>,
    /// Maximum number of receipts, up to 200
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u16,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { connection, command: Command::List(list) } = arguments;
    let receipts = connection.connect(WAREHOUSE).await?.search(&["v1", "receipts"], &list).await?;
    connection.format().print_table(&receipts, "/receipts", COLUMNS)
}
