//! `backhaul deliveries`: messages to merchants, their attempts and replays.

use std::cell::Cell;
use std::cmp::Reverse;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, value_parser};
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use platform::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::UsageError;
use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, call_each, find, merge_lists};
use crate::output::{Column, Format, computed, details, items, print, table, text_at, time, value};

const COLUMNS: &[Column] = &[
    value("id", "/id"),
    time("created", "/created_at"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("event", "/event"),
    value("state", "/state"),
    value("status", "/last_status"),
];

const FIELDS: &[Column] = &[
    value("id", "/id"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("event", "/event"),
    value("ordering key", "/ordering_key"),
    value("state", "/state"),
    time("created", "/created_at"),
    time("next attempt", "/next_attempt_at"),
    value("last outcome", "/last_outcome"),
    value("body", "/body"),
];

const ATTEMPT_COLUMNS: &[Column] = &[
    time("time", "/started_at"),
    computed("latency", |attempt| format!("{} ms", text_at(attempt, "/latency_ms"))),
    value("status", "/status"),
    value("detail", "/detail"),
    value("response", "/response_body"),
];

const REPORT_COLUMNS: &[Column] = &[
    time("from", "/begins_at"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("outcome", "/outcome"),
    value("status", "/status"),
    value("requests", "/requests"),
];

/// List, show, replay and count messages to merchants
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    services: DeliveryServiceArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List deliveries, newest first
    #[command(after_help = "\
Examples:
  backhaul deliveries list --state dead
  backhaul deliveries list --merchant acme --status 500 --from 2026-01-31T00:00:00Z --json")]
    List(Box<List>),
    /// Show a delivery and every attempt
    Show {
        /// ID of the delivery, which is the message's webhook-id
        id: String,
    },
    /// Send messages again: one by its ID, dead ones that match a filter, or all dead ones
    #[command(after_help = "\
Examples:
  backhaul deliveries replay 0198c0de-0000-7000-8000-000000000000
  backhaul deliveries replay --merchant acme --status 503 --dry-run
  backhaul deliveries replay --merchant acme --status 503 --per-second 20")]
    Replay(Box<Replay>),
    /// Count requests by merchant, message kind and status code
    Report(Report),
}

#[derive(Args, Serialize)]
struct List {
    #[command(flatten)]
    #[serde(flatten)]
    filter: Filter,
    /// Maximum number of deliveries, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u16).range(1..=200))]
    limit: u16,
}

/// A filter for deliveries; all conditions must match.
#[derive(Args, Serialize, Default, PartialEq, Eq)]
struct Filter {
    /// Only messages to this merchant
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Only messages of this kind
    #[arg(long, value_parser = PossibleValuesParser::new(MessageKind::ALL.map(MessageKind::name)))]
    kind: Option<String>,
    /// Only deliveries in this state
    #[arg(long, value_parser = ["pending", "delivered", "dead"])]
    state: Option<String>,
    /// Only deliveries whose last response had this status code
    #[arg(long, value_name = "CODE")]
    status: Option<u16>,
    /// Only messages with this ordering key, for example rma:RMA-1
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// Created at this time or later
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
}

#[derive(Args)]
struct Replay {
    /// Replay this delivery
    #[arg(conflicts_with = "Filter")]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Replay every dead message of every merchant
    #[arg(long, conflicts_with_all = ["id", "Filter"])]
    all: bool,
    /// Include messages when a newer one with the same ordering key was delivered
    #[arg(long)]
    force: bool,
    /// Only count the messages
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    /// Messages per second, up to 1000
    #[arg(long, value_name = "N", conflicts_with = "id", value_parser = value_parser!(u16).range(1..=1000))]
    per_second: Option<u16>,
}

#[derive(Args, Serialize)]
struct Report {
    /// Only messages to this merchant
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Start of the report [default: 24 hours ago]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// End of the report [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Length of a row
    #[arg(long, default_value = "hour", value_parser = ["hour", "day"])]
    by: String,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, services, command } = arguments;
    let format = operator.format();
    let services = services.clients(&operator.connect().await?)?;
    match command {
        Command::List(list) => list.run(&services, format).await,
        Command::Show { id } => {
            let path = ["v1", "deliveries", &id];
            let delivery = find(&services, async |service| service.get(&path).await).await?;
            format.print(&delivery, describe)
        }
        Command::Replay(replay) => replay.run(&services).await,
        Command::Report(report) => report.run(&services, format).await,
    }
}

fn describe(delivery: &Value) -> String {
    let attempts = table(items(delivery, "/requests"), ATTEMPT_COLUMNS);
    format!("{}\n{attempts}", details(delivery, FIELDS))
}

impl List {
    /// Merges the newest deliveries of all services. Delivery IDs sort by creation time.
    async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        let path = ["v1", "deliveries"];
        let call = async |service: &ApiClient| service.search(&path, self).await;
        let (mut page, outcome) = merge_lists(services, "deliveries", call).await?;
        if let Some(Value::Array(deliveries)) = page.get_mut("deliveries") {
            deliveries.sort_by_key(|delivery| Reverse(delivery.get("id").map(Value::to_string)));
            deliveries.truncate(self.limit.into());
        }
        format.print_table(&page, "/deliveries", COLUMNS)?;
        outcome
    }
}

impl Replay {
    async fn run(&self, services: &[ApiClient]) -> anyhow::Result<()> {
        if let Some(id) = &self.id {
            let path = ["v1", "deliveries", id, "replay"];
            let query = [("force", if self.force { "true" } else { "false" })];
            find(services, async |service| service.trigger(&path, &query).await).await?;
            return print_json(&json!({ "replayed": id }));
        }
        if !self.all && self.filter == Filter::default() {
            return Err(UsageError::new(
                "pass a delivery id, a filter, or --all for every dead message",
            ));
        }
        let mut body =
            json!({ "filter": self.filter, "force": self.force, "dry_run": self.dry_run });
        if let (Some(rate), Some(body)) = (self.per_second, body.as_object_mut()) {
            body.insert("per_second".to_owned(), rate.into());
        }
        let call = async |service: &ApiClient| service.post(&["v1", "replays"], &body).await;
        let (replays, outcome) = call_each(services, call).await;
        // TestService replays continue even if another service failed.
        if !replays.is_empty() {
            print_json(&json!({ "replays": replays }))?;
        }
        outcome
    }
}

/// Prints the response of a command that has no table.
fn print_json(response: &Value) -> anyhow::Result<()> {
    Ok(print(&format!("{response:#}\n"))?)
}

impl Report {
    async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        let is_truncated = Cell::new(false);
        let call = async |service: &ApiClient| {
            let report = service.search(&["v1", "reports", "deliveries"], self).await?;
            is_truncated.set(is_truncated.get() || report.get("truncated") == Some(&json!(true)));
            Ok(report)
        };
        let (mut report, outcome) = merge_lists(services, "counts", call).await?;
        if let Some(report) = report.as_object_mut() {
            report.insert("truncated".to_owned(), is_truncated.get().into());
        }
        format.print_table(&report, "/counts", REPORT_COLUMNS)?;
        if is_truncated.get() && format == Format::Text {
            eprintln!("the oldest rows are missing: choose a shorter time or --by day");
        }
        outcome
    }
}
