//! `backhaul discrepancies`: facts about returns that contradict each other.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::connection::MerchantCommand;
use crate::output::{Column, time, value};
use crate::service_urls::RETURNS;

const COLUMNS: &[Column] = &[
    value("position", "/position"),
    value("merchant", "/merchant").whole(),
    time("time", "/at"),
    value("kind", "/detail/kind").wide(),
    value("resolved by", "/resolution/by").wide(),
    value("message", "/message"),
];

const FIELDS: &[Column] = &[
    value("merchant", "/merchant"),
    value("position", "/position"),
    time("time", "/at"),
    value("kind", "/detail/kind"),
    value("message", "/message"),
    time("resolved", "/resolution/at"),
    value("resolved by", "/resolution/by"),
    value("note", "/resolution/note"),
    value("assigned to", "/resolution/rma_identifier"),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List discrepancies, newest first
    #[command(after_help = "\
Examples:
  backhaul discrepancies list --state open --all-merchants
  backhaul discrepancies list --kind refund_of_unknown_return --merchant acme")]
    List(List),
    /// Record that nothing more has to be done about a discrepancy
    #[command(after_help = "\
Examples:
  backhaul discrepancies resolve 17 --note 'Agreed with Acme' --merchant acme
A refund that names an unknown return is matched with the right one:
  backhaul discrepancies resolve 17 --note Mistyped --rma RMA-1 --merchant acme")]
    Resolve {
        /// Position of the discrepancy
        position: i64,
        /// Reason for the record
        #[arg(long)]
        note: String,
        /// Return of a refund that names an unknown one
        #[arg(long, value_name = "RMA")]
        rma: Option<String>,
    },
}

#[derive(Args, Serialize)]
pub(crate) struct List {
    /// Only discrepancies in this state
    #[arg(long, value_parser = ["open", "resolved"])]
    state: Option<String>,
    /// Only discrepancies of this kind
    #[arg(long)]
    kind: Option<String>,
    /// Only discrepancies of this order
    #[arg(long, value_name = "ORDER")]
    #[serde(rename = "order_identifier")]
    order: Option<String>,
    /// Only discrepancies of this return
    #[arg(long, value_name = "RMA")]
    #[serde(rename = "rma_identifier")]
    rma: Option<String>,
    /// Search all merchants, as the operator
    #[arg(long)]
    #[serde(skip)]
    all_merchants: bool,
    /// Maximum number of discrepancies
    #[arg(long, value_name = "N", default_value = "50")]
    #[serde(skip)]
    limit: NonZeroUsize,
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let format = connection.format();
    let all_merchants = matches!(&command, Command::List(list) if list.all_merchants);
    let client = connection.connect_to(RETURNS, all_merchants).await?;
    match command {
        Command::List(list) => {
            let path = ["v1", "discrepancies"];
            let items = "discrepancies";
            let found = client.list(&path, items, &list, list.limit.get()).await?;
            format.print_table(&found, "/discrepancies", COLUMNS)
        }
        Command::Resolve { position, note, rma } => {
            let mut body = Map::from_iter([("note".to_owned(), Value::from(note))]);
            body.extend(rma.map(|rma| ("rma_identifier".to_owned(), rma.into())));
            let path = ["v1", "discrepancies", &position.to_string(), "resolve"];
            format.print_details(&client.post(&path, &body.into()).await?, FIELDS)
        }
    }
}
