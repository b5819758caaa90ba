//! `backhaul shopper`: export and erase the personal data of a shopper.

mod export;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::connection::MerchantCommand;
use crate::output::{Column, Format, computed, details, items, join, table, text_at, time, value};
use crate::service_urls::{ORDERS, RETURNS};
use crate::settings::Settings;
use crate::usage_error;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
const OPEN: [&str; 2] = ["CREATED", "PARTIAL_REFUND"];
/// Orders whose returns are looked up one by one. Returns of further orders are found by e-mail address.
const MAX_LOOKUPS: usize = 200;

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

const RETURN_COLUMNS: &[Column] = &[
    value("open return", "/rma_identifier"),
    value("status", "/status"),
    time("created", "/created_at"),
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
    /// Names, e-mail addresses, phone numbers, addresses and notes are replaced. Amounts
    /// and identifiers stay. Erase the shopper in the merchant's own systems first: a
    /// later snapshot of an order brings the data back.
    #[command(
        verbatim_doc_comment,
        after_help = "\
Examples:
  backhaul shopper erase --merchant acme --email ada@shopper.example --dry-run
  backhaul shopper erase --merchant acme --email ada@shopper.example --wait
  backhaul shopper erase --merchant acme --email ada@shopper.example \\
      --order 1001 --force"
    )]
    Erase(Erase),
    /// Show an erasure and the services that have confirmed it
    #[command(after_help = "\
Example:
  backhaul shopper erasure 01980a4c-7c1e-7000-8000-000000000001 --merchant acme")]
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

#[derive(Args)]
pub(crate) struct Erase {
    /// The shopper's e-mail address
    #[arg(long, required_unless_present = "orders")]
    email: Option<String>,
    /// Only this order; can be repeated
    #[arg(long = "order", value_name = "ORDER")]
    orders: Vec<String>,
    /// Show the orders and open returns, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Erase the data of open returns too
    #[arg(long)]
    force: bool,
    /// Wait until all services have erased the data
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

const LIST_COLUMNS: &[Column] = &[
    value("erasure", "/id"),
    value("merchant", "/merchant"),
    value("state", "/state"),
    value("by", "/requested_by"),
    time("requested", "/created_at"),
    value("orders", "/orders"),
];

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let (orders, format) = (connection.connect(ORDERS).await?, connection.format());
    match command {
        Command::Export { email } => export::run(&orders, &email).await,
        Command::Erase(erase) => erase.run(&orders, format).await,
        Command::Erasure { id } => {
            format.print(&orders.get(&["v1", "erasures", &id]).await?, describe)
        }
        Command::Erasures => {
            let query: &[(&str, &str)] = &[];
            let found = orders.list(&["v1", "erasures"], "erasures", query, 100).await?;
            format.print_table(&found, "/erasures", LIST_COLUMNS)
        }
    }
}

impl Erase {
    async fn run(&self, orders: &ApiClient, format: Format) -> anyhow::Result<()> {
        if self.email.as_deref().is_some_and(|email| !email.contains('@')) {
            return Err(usage_error("--email must be an e-mail address"));
        }
        let found = orders.post(&["v1", "erasures"], &self.body(true)).await?;
        let open = self.open_returns(orders, items(&found, "/order_identifiers")).await?;
        if self.dry_run {
            let report = json!({
                "order_identifiers": found.get("order_identifiers"), "open_returns": open,
            });
            return format.print(&report, describe_dry_run);
        }
        if !open.is_empty() && !self.force {
            eprint!("{}", table(&open, RETURN_COLUMNS));
            bail!("open returns need the data: close them first, or erase with --force");
        }
        let mut erasure = orders.post(&["v1", "erasures"], &self.body(false)).await?;
        if self.wait {
            erasure = wait(orders, &text_at(&erasure, "/id")).await?;
        }
        format.print(&erasure, describe)
    }

    fn body(&self, dry_run: bool) -> Value {
        let orders = (!self.orders.is_empty()).then_some(&self.orders);
        json!({
            "email": self.email, "order_identifiers": orders, "dry_run": dry_run, "force": self.force,
        })
    }

    /// The open returns of these orders, and those of the shopper as a giftee.
    async fn open_returns(
        &self,
        orders: &ApiClient,
        identifiers: &[Value],
    ) -> anyhow::Result<Vec<Value>> {
        let client = orders.at_service(RETURNS, &Settings::load()?)?;
        let mut queries: Vec<_> = identifiers
            .iter()
            .filter_map(Value::as_str)
            .take(MAX_LOOKUPS)
            .map(|order| ("order_identifier", order))
            .collect();
        let email = self.email.as_deref().filter(|_| self.orders.is_empty());
        queries.extend(email.map(|email| ("email", email)));
        let mut open = BTreeMap::new();
        for query in queries {
            let found = client.list(&["v1", "returns"], "returns", &[query], usize::MAX).await?;
            let is_open = |it: &&Value| OPEN.contains(&text_at(it, "/status").as_str());
            let found = items(&found, "/returns").iter().filter(is_open);
            open.extend(found.map(|it| (text_at(it, "/rma_identifier"), it.clone())));
        }
        Ok(open.into_values().collect())
    }
}

/// Polls until all services have confirmed. Reports the progress to standard error.
async fn wait(orders: &ApiClient, id: &str) -> anyhow::Result<Value> {
    loop {
        let erasure = orders.get(&["v1", "erasures", id]).await?;
        if text_at(&erasure, "/state") == "finished" {
            return Ok(erasure);
        }
        let confirmed = items(&erasure, "/confirmations").len();
        eprintln!("{confirmed} of 3 services have confirmed");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn describe(erasure: &Value) -> String {
    details(erasure, FIELDS)
}

fn describe_dry_run(report: &Value) -> String {
    let fields = details(report, &[value("orders", "/order_identifiers")]);
    let open = items(report, "/open_returns");
    if open.is_empty() { fields } else { format!("{fields}\n{}", table(open, RETURN_COLUMNS)) }
}
