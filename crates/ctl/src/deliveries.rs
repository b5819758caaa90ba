//! `backhaul deliveries`: messages to merchants, their attempts and replays.

mod dry_run;
mod hourly;
mod next_step;
mod replay;
mod report;
mod show;
mod superseded;
mod wait;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, value_parser};
use domain::access::MerchantId;
use domain::delivery::OUTCOMES;
use domain::message_kind::MessageKind;
use platform::{Clock, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, find, list_newest};
use crate::output::{Column, computed, id, text_at, time, value};
use crate::short_id;
use crate::time_input::{check_period, parse_time};
use hourly::Hourly;
use replay::Replay;
use report::Report;
use superseded::mark_superseded;

const COLUMNS: &[Column] = &[
    id("id", "/id"),
    time("created", "/created_at").wide(),
    value("merchant", "/merchant").whole().leave_out_same(2),
    value("kind", "/kind").wide(),
    value("event", "/event").leave_out(1),
    value("key", "/ordering_key").whole(),
    value("state", "/state"),
    value("tries", "/attempt_count"),
    computed("last", last_response),
    computed("next", next_attempt).leave_out(3).leave_out_same(0),
    value("waiting", "/waiting/reason").wide(),
];

/// List, show, retry, replay and count messages to merchants
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
  backhaul deliveries list --merchant acme --outcome timed_out
  backhaul deliveries list --text RMA-1
  backhaul deliveries list --merchant acme --status 500 --from yesterday --json")]
    List(Box<List>),
    /// Show a delivery and every attempt
    #[command(after_help = "\
Example:
  backhaul deliveries show 0198c0de-0000-7abc")]
    Show {
        /// ID of the delivery, which is the message's webhook-id
        id: String,
    },
    /// Send a waiting message now instead of at its next attempt
    #[command(after_help = "\
Example:
  backhaul deliveries retry 0198c0de-0000-7abc")]
    Retry {
        /// ID of the delivery
        id: String,
    },
    /// Send messages again: one by its ID, dead ones of a merchant, or dead ones of all merchants
    #[command(after_help = "\
Examples:
  backhaul deliveries replay 0198c0de-0000-7abc --dry-run
  backhaul deliveries replay 0198c0de-0000-7abc --wait
  backhaul deliveries replay --merchant acme --status 503 --dry-run
  backhaul deliveries replay --merchant acme --status 503 --per-second 20 --wait")]
    Replay(Box<Replay>),
    /// Show success rate and latency of each merchant's endpoints, worst first
    #[command(after_help = "\
Examples:
  backhaul deliveries report
  backhaul deliveries report --merchant acme --from 7d
  backhaul deliveries report --from 2026-11-01 --to 2026-11-08 --by day")]
    Report(Report),
    /// Show attempts, failures and durations hour by hour
    #[command(after_help = "\
Example:
  backhaul deliveries hourly rma --merchant acme --hours 48")]
    Hourly(Hourly),
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of deliveries, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u16).range(1..=200))]
    limit: u16,
}

/// A filter for deliveries; all conditions must match.
#[derive(Args, Serialize)]
struct Filter {
    /// Only messages to this merchant
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Only messages of this kind
    #[arg(long, value_parser = PossibleValuesParser::new(MessageKind::ALL.map(MessageKind::name)))]
    kind: Option<String>,
    /// Only deliveries in this state; a replay takes dead ones unless this is delivered
    #[arg(long, value_parser = ["pending", "delivered", "dead"])]
    state: Option<String>,
    /// Only deliveries whose last response had this status code
    #[arg(long, value_name = "CODE")]
    status: Option<u16>,
    /// Only deliveries whose last attempt had this outcome
    #[arg(long, value_parser = PossibleValuesParser::new(OUTCOMES))]
    outcome: Option<String>,
    /// Only messages with this ordering key, for example rma:RMA-1
    #[arg(long, value_name = "KEY")]
    ordering_key: Option<String>,
    /// Only messages whose ordering key has this return, ASN, exchange or drop-shipment order, or with this ID
    #[arg(long)]
    text: Option<String>,
    /// Only messages with this event, for example rma.created
    #[arg(long)]
    event: Option<String>,
    /// Created at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
}

impl Filter {
    fn period(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (self.from, self.to)
    }
}

impl Command {
    /// The merchant of a filter.
    fn merchant(&self) -> Option<&MerchantId> {
        match self {
            Self::List(list) => list.filter.merchant.as_ref(),
            Self::Replay(replay) => replay.merchant(),
            Self::Report(report) => report.merchant(),
            Self::Hourly(hourly) => hourly.merchant(),
            Self::Show { .. } | Self::Retry { .. } => None,
        }
    }

    /// The start and end of a filter.
    fn period(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        match self {
            Self::List(list) => list.filter.period(),
            Self::Replay(replay) => replay.period(),
            Self::Report(report) => report.period(),
            Self::Show { .. } | Self::Retry { .. } | Self::Hourly(_) => (None, None),
        }
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, services, command } = arguments;
    let format = operator.format();
    let (from, to) = command.period();
    check_period(("--from", from), ("--to", to))?;
    let auth = operator.connect().await?;
    auth.require_merchant(command.merchant()).await?;
    let services = services.clients(&auth)?;
    match command {
        Command::List(list) => {
            let filter = &list.filter;
            let limit = list.limit.into();
            let (page, outcome) = list_newest(&services, "deliveries", filter, limit).await?;
            format.print_table(&page, "/deliveries", COLUMNS)?;
            outcome
        }
        Command::Show { id } => {
            let id = short_id::resolve(&services, "delivery", "deliveries", &id).await?;
            let path = ["v1", "deliveries", &id];
            let delivery = find(&services, async |service| {
                mark_superseded(service, service.get(&path).await?).await
            })
            .await?;
            format.print(&delivery, show::describe)
        }
        Command::Retry { id } => {
            let id = short_id::resolve(&services, "delivery", "deliveries", &id).await?;
            let path = ["v1", "deliveries", &id, "retry"];
            let retried =
                find(&services, async |service| service.trigger(&path, &[]).await).await?;
            format.print(&retried, |_| format!("{id} is due now\n"))
        }
        Command::Replay(replay) => replay.run(&services, format).await,
        Command::Report(report) => report.run(&services, format).await,
        Command::Hourly(hourly) => hourly.run(&services, format).await,
    }
}

/// The time until the next attempt, for example `in 12m`.
fn next_attempt(delivery: &Value) -> String {
    let at = delivery.pointer("/next_attempt_at").and_then(Value::as_str);
    at.and_then(|at| at.parse().ok())
        .map_or_else(|| "-".to_owned(), |at| wait(Clock::system().now(), at))
}

fn wait(now: Timestamp, until: Timestamp) -> String {
    match until.signed_duration_since(now).num_seconds() {
        ..=0 => "now".to_owned(),
        seconds @ 1..60 => format!("in {seconds}s"),
        seconds => format!("in {}m", seconds / 60),
    }
}

/// The last response: its status code, or the outcome without a response.
fn last_response(delivery: &Value) -> String {
    let status = text_at(delivery, "/last_status");
    if status == "-" { text_at(delivery, "/last_outcome") } else { status }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::output::table;

    #[test]
    fn the_list_names_the_return_of_a_message() {
        let delivery = json!({
            "id": "0198c0de-0000-7abc-8000-0123456789ab", "merchant": "acme-outdoor",
            "event": "rma.tracking_updated", "ordering_key": "rma:RMA-GTRRK0RFE0NSM5RQ",
            "state": "dead", "attempt_count": 2, "last_status": 503,
        });
        expect![[r#"
            ID                  MERCHANT      KEY                       STATE  TRIES  LAST
            0198c0de-0000-7abc  acme-outdoor  rma:RMA-GTRRK0RFE0NSM5RQ  dead   2      503
        "#]]
        .assert_eq(&table([&delivery], COLUMNS));
    }

    #[test]
    fn the_list_of_one_merchant_shows_the_next_attempts() {
        let delivery = |state: &str, next: Value| {
            json!({
                "id": "0198c0de-0000-7abc-8000-0123456789ab", "merchant": "acme-outdoor",
                "event": "rma.tracking_updated", "ordering_key": "rma:RMA-GTRRK0RFE0NSM5RQ",
                "state": state, "attempt_count": 1, "last_status": 503, "next_attempt_at": next,
            })
        };
        let due = delivery("pending", json!("2026-01-01T00:00:00Z"));
        expect![[r#"
            ID                  KEY                       STATE    TRIES  LAST  NEXT
            0198c0de-0000-7abc  rma:RMA-GTRRK0RFE0NSM5RQ  pending  1      503   now
            0198c0de-0000-7abc  rma:RMA-GTRRK0RFE0NSM5RQ  dead     1      503   -
        "#]]
        .assert_eq(&table([&due, &delivery("dead", Value::Null)], COLUMNS));
    }

    #[test]
    fn a_long_key_is_shortened_before_the_state_is_left_out() {
        let delivery = |key: &str| {
            json!({
                "id": "0198c0de-0000-7abc-8000-0123456789ab", "merchant": "acme-outdoor",
                "event": "inventory_receipt.received", "ordering_key": key, "state": "delivered",
                "attempt_count": 1, "last_status": 200,
            })
        };
        let deliveries =
            [delivery("inbound_asn:IN-DEMO-20261118-023315.006-NORTH"), delivery("rma:RMA-1")];
        expect![[r#"
            ID                  KEY                                   STATE      TRIES  LAST
            0198c0de-0000-7abc  inbound_asn:IN-DEMO-20261118-023315…  delivered  1      200
            0198c0de-0000-7abc  rma:RMA-1                             delivered  1      200
        "#]]
        .assert_eq(&table(&deliveries, COLUMNS));
    }

    #[test]
    fn waits_are_short_texts() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let text = |until: &str| wait(now, until.parse().unwrap());
        assert_eq!(text("2025-12-31T23:59:00Z"), "now");
        assert_eq!(text("2026-01-01T00:00:40Z"), "in 40s");
        assert_eq!(text("2026-01-01T00:43:10Z"), "in 43m");
    }
}
