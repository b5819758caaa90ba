//! `backhaul shopper`: export and erase the personal data of a shopper.

mod erase;
mod export;

use clap::Subcommand;
use serde_json::Value;

use crate::api_client::NO_QUERY;
use crate::connection::MerchantCommand;
use crate::output::{Column, computed, details, id, items, join, text_at, time, value};
use crate::service_urls::ORDERS;
use crate::short_id;

const FIELDS: &[Column] = &[
    value("erasure", "/id"),
    value("merchant", "/merchant"),
    value("state", "/state"),
    value("by", "/requested_by"),
    time("requested", "/created_at"),
    time("finished", "/finished_at"),
    value("orders", "/orders"),
    value("erased orders", "/erased_orders"),
    computed("confirmed by", |erasure| {
        join(items(erasure, "/confirmations").iter().map(|it| text_at(it, "/service")))
    }),
    computed("kept returns", |erasure| {
        join(items(erasure, "/kept_returns").iter().map(|it| text_at(it, "/rma_identifier")))
    }),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print everything that is stored about a shopper, as one JSON document
    #[command(after_help = "\
Example:
  backhaul shopper export --merchant acme --email ada@shopper.example")]
    Export {
        /// The shopper's e-mail address
        #[arg(long)]
        email: String,
    },
    /// Erase a shopper's personal data in all services
    ///
    /// Names, e-mail addresses, phone numbers, addresses and notes are replaced. Amounts and identifiers stay.
    /// Erase the shopper in the merchant's own systems first: a later snapshot of an order brings the data
    /// back.
    #[command(after_help = "\
Examples:
  backhaul shopper erase --merchant acme --email ada@shopper.example --dry-run
  backhaul shopper erase --merchant acme --email ada@shopper.example --wait
  backhaul shopper erase --merchant acme --email ada@shopper.example \\
      --order 1001 --force")]
    Erase(erase::Erase),
    /// Show an erasure and the services that have confirmed it
    #[command(after_help = "\
Example:
  backhaul shopper erasure 01980a4c-7c1e-7000 --merchant acme")]
    Erasure {
        /// ID of the erasure
        id: String,
    },
    /// List erasures, newest first
    #[command(after_help = "\
Example:
  backhaul shopper erasures --merchant acme")]
    Erasures,
}

const LIST_COLUMNS: &[Column] = &[
    id("erasure", "/id"),
    value("merchant", "/merchant").whole(),
    value("state", "/state"),
    value("by", "/requested_by").leave_out(1),
    time("requested", "/created_at"),
    value("orders", "/orders"),
];

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let orders = connection.connect(ORDERS).await?;
    let format = connection.format();
    match command {
        Command::Export { email } => export::run(&orders, &email).await,
        Command::Erase(erase) => erase.run(&orders, format).await,
        Command::Erasure { id } => {
            let services = std::slice::from_ref(&orders);
            let id = short_id::resolve(services, "erasure", "erasures", &id).await?;
            format.print(&orders.get(&["v1", "erasures", &id]).await?, describe)
        }
        Command::Erasures => {
            let found = orders.list(&["v1", "erasures"], "erasures", NO_QUERY, 100).await?;
            format.print_table(&found, "/erasures", LIST_COLUMNS)
        }
    }
}

fn describe(erasure: &Value) -> String {
    details(erasure, FIELDS)
}
