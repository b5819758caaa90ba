//! `backhaul receipt`: units received in a warehouse.

use std::num::NonZeroUsize;

use clap::Subcommand;
use serde_json::Value;

use super::product;
use crate::connection::MerchantCommand;
use crate::output::{Column, computed, time, value};
use crate::service_urls::WAREHOUSE;

const COLUMNS: &[Column] = &[
    time("received", "/received_at"),
    value("asn", "/message/asn_number"),
    value("line", "/message/line_identifier"),
    value("unit", "/message/unit_identifier"),
    computed("product", |receipt| product(receipt.get("message").unwrap_or(&Value::Null))),
    value("condition", "/message/initial_condition").wide(),
    value("reject reason", "/message/reject_reason").wide(),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List receipts, newest first
    #[command(after_help = "\
Example:
  backhaul receipt list --asn IN-1001")]
    List {
        /// Only units of this inbound ASN
        #[arg(long, value_name = "NUMBER")]
        asn: Option<String>,
        /// Maximum number of receipts
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
    },
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command: Command::List { asn, limit } } = arguments;
    let warehouse = connection.connect(WAREHOUSE).await?;
    let query = [("asn_number", asn)];
    let receipts = warehouse.list(&["v1", "receipts"], "receipts", &query, limit.get()).await?;
    connection.format().print_table(&receipts, "/receipts", COLUMNS)
}
