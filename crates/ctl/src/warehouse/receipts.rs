//! `backhaul receipt`: units that arrived.

use clap::{Args, Subcommand};
use domain::warehouse::InventoryReceipt;
use platform::Timestamp;
use serde::Deserialize;

use crate::output::{or_dash, table, time};
use crate::party::Party;
use crate::places::WAREHOUSE;

/// See which units arrived in a warehouse
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    party: Party,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List receipts, newest first
    #[command(after_help = "\
Example:
  backhaul receipt list --asn IN-1001")]
    List {
        /// Only units of this inbound ASN
        #[arg(long, value_name = "NUMBER")]
        asn: Option<String>,
        /// Maximum number of entries, up to 200
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u16,
    },
}

#[derive(Deserialize)]
struct Page {
    receipts: Vec<Receipt>,
}

#[derive(Deserialize)]
struct Receipt {
    received_at: Timestamp,
    message: InventoryReceipt,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { party, command: Command::List { asn, limit } } = arguments;
    let mut query = vec![("limit", limit.to_string())];
    query.extend(asn.map(|asn| ("asn_number", asn)));
    let notifier = party.connect(WAREHOUSE).await?;
    party.format().show(notifier.search(&["v1", "receipts"], &query).await?, tabulate)
}

fn tabulate(page: &Page) -> String {
    let row = |receipt: &Receipt| {
        let message = &receipt.message;
        [
            time(&receipt.received_at),
            message.asn_number.to_string(),
            message.line_identifier.to_string(),
            or_dash(message.unit_identifier.as_ref()),
            or_dash(message.sku.as_ref().or(message.upc.as_ref())),
            or_dash(message.initial_condition.map(|condition| condition.word())),
            or_dash(message.reject_reason.as_ref()),
        ]
    };
    let headings = ["received", "asn", "line", "unit", "product", "condition", "rejected because"];
    table(headings, page.receipts.iter().map(row))
}
