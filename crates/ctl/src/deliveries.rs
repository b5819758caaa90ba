//! `backhaul deliveries`: what was sent to merchants, what came of it, and sending it again.

use std::cell::Cell;
use std::cmp::Reverse;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, value_parser};
use domain::access::MerchantId;
use domain::kind::Kind;
use platform::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Usage;
use crate::deliverers::{Deliverers, each, first, together};
use crate::operator::{Flags, Operator};
use crate::output::{or_dash, print, properties, table, time};

/// See what was sent to merchants, and send it again
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    deliverers: Deliverers,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List messages, newest first
    #[command(after_help = "\
Examples:
  backhaul deliveries list --state dead
  backhaul deliveries list --merchant acme --status 500 --from 2026-01-31T00:00:00Z --json")]
    List {
        #[command(flatten)]
        filter: Filter,
        /// Maximum number of deliveries, up to 200
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u16).range(1..=200))]
        limit: u16,
    },
    /// Show a message and every request that was made for it
    Show {
        /// Its id, which the merchant sees as webhook-id
        id: String,
    },
    /// Send messages again: one by its id, the dead ones that fit a filter, or all dead ones
    #[command(after_help = "\
Examples:
  backhaul deliveries replay 0198c0de-0000-7000-8000-000000000000
  backhaul deliveries replay --merchant acme --status 503 --dry-run
  backhaul deliveries replay --merchant acme --status 503 --per-second 20")]
    Replay(Box<Replay>),
    /// Count requests by merchant, kind and status code
    Report {
        /// Only this merchant's
        #[arg(long)]
        merchant: Option<MerchantId>,
        /// From this time on; the last 24 hours unless given
        #[arg(long, value_name = "TIME")]
        from: Option<Timestamp>,
        #[arg(long, value_name = "TIME")]
        to: Option<Timestamp>,
        /// A row for each hour or each day
        #[arg(long, default_value = "hour", value_parser = ["hour", "day"])]
        by: String,
    },
}

/// Which messages; all that is given must fit.
#[derive(Args)]
struct Filter {
    /// Only this merchant's
    #[arg(long)]
    merchant: Option<MerchantId>,
    #[arg(long, value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::name)))]
    kind: Option<String>,
    #[arg(long, value_parser = ["pending", "delivered", "dead"])]
    state: Option<String>,
    /// The status code of the last answer
    #[arg(long, value_name = "CODE")]
    status: Option<u16>,
    /// For example rma:RMA-1
    #[arg(long)]
    lane: Option<String>,
    /// Created at this time or later
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
}

#[derive(Args)]
struct Replay {
    /// One message
    #[arg(conflicts_with = "Filter")]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Every dead message of every merchant
    #[arg(long, conflicts_with_all = ["id", "Filter"])]
    all: bool,
    /// Also what a newer message of its lane has overtaken
    #[arg(long)]
    force: bool,
    /// Only say how many there are
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    /// How many a second, up to 1000
    #[arg(long, value_name = "N", conflicts_with = "id", value_parser = value_parser!(u16).range(1..=1000))]
    per_second: Option<u16>,
}

impl Filter {
    fn given(&self) -> Vec<(&'static str, String)> {
        let time = |at: &Timestamp| at.to_rfc3339();
        let given = [
            ("merchant", self.merchant.as_ref().map(MerchantId::to_string)),
            ("kind", self.kind.clone()),
            ("state", self.state.clone()),
            ("status", self.status.map(|status| status.to_string())),
            ("lane", self.lane.clone()),
            ("from", self.from.as_ref().map(time)),
            ("to", self.to.as_ref().map(time)),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    fn body(&self) -> Map<String, Value> {
        let value = |(name, value): (&str, String)| match self.status {
            Some(status) if name == "status" => (name.to_owned(), json!(status)),
            _ => (name.to_owned(), json!(value)),
        };
        self.given().into_iter().map(value).collect()
    }
}

#[derive(Deserialize)]
struct Delivery {
    id: String,
    merchant: String,
    kind: String,
    event: String,
    lane: Option<String>,
    state: String,
    created_at: Timestamp,
    due_at: Option<Timestamp>,
    last_status: Option<u16>,
    last_outcome: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    deliveries: Vec<Delivery>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(flatten)]
    delivery: Delivery,
    body: String,
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct Request {
    started_at: Timestamp,
    latency_ms: u64,
    status: Option<u16>,
    detail: String,
    answer: String,
}

#[derive(Deserialize)]
struct Report {
    counts: Vec<Count>,
    truncated: bool,
}

#[derive(Deserialize)]
struct Count {
    begins_at: Timestamp,
    merchant: String,
    kind: String,
    outcome: String,
    status: Option<u16>,
    requests: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { flags, deliverers, command } = arguments;
    let format = flags.format();
    let services = deliverers.reach(&flags.connect().await?)?;
    match command {
        Command::List { filter, limit } => {
            let (found, ended) = list(&services, &filter, limit).await?;
            format.show(found, tabulate)?;
            ended
        }
        Command::Show { id } => {
            let found = first(&services, async |it| it.get(&["v1", "deliveries", &id]).await);
            format.show(found.await?, describe)
        }
        Command::Replay(replay) => replay.send(&services).await,
        Command::Report { merchant, from, to, by } => {
            let filter =
                Filter { merchant, from, to, kind: None, state: None, status: None, lane: None };
            let mut query = filter.given();
            query.push(("by", by));
            let path = ["v1", "reports", "deliveries"];
            let truncated = Cell::new(false);
            let ask = async |it: &Operator| {
                let part = it.search(&path, &query).await?;
                let cut = part.get("truncated").and_then(Value::as_bool);
                truncated.set(truncated.get() || cut.unwrap_or_default());
                Ok(part)
            };
            let (mut report, ended) = together(&services, "counts", ask).await?;
            if let Some(report) = report.as_object_mut() {
                report.insert("truncated".to_owned(), truncated.get().into());
            }
            format.show(report, count)?;
            ended
        }
    }
}

/// Of all services the newest; an id begins with the time it was made at.
async fn list(
    services: &[Operator],
    filter: &Filter,
    limit: u16,
) -> anyhow::Result<(Value, anyhow::Result<()>)> {
    let mut query = filter.given();
    query.push(("limit", limit.to_string()));
    let path = ["v1", "deliveries"];
    let (mut found, ended) =
        together(services, "deliveries", async |it| it.search(&path, &query).await).await?;
    if let Some(Value::Array(deliveries)) = found.get_mut("deliveries") {
        let id = |delivery: &Value| delivery.get("id").map(Value::to_string);
        deliveries.sort_by_key(|delivery| Reverse(id(delivery)));
        deliveries.truncate(limit.into());
    }
    Ok((found, ended))
}

impl Replay {
    async fn send(&self, services: &[Operator]) -> anyhow::Result<()> {
        if let Some(id) = &self.id {
            let path = ["v1", "deliveries", id, "replay"];
            let query = [("force", self.force.to_string())];
            first(services, async |it| it.order(&path, &query).await).await?;
            return show(&json!({"replayed": id}));
        }
        // Too many to be sent because somebody pressed return early.
        if !self.all && self.filter.given().is_empty() {
            let which = "say which: an id, a filter, or --all for every dead message there is";
            return Err(Usage(which.to_owned()).into());
        }
        let (path, body) = (["v1", "replays"], self.body());
        let post = async |it: &Operator| it.post(&path, body.clone()).await;
        let (started, ended) = each(services, post).await;
        // What was started goes on, also when another service refused.
        if !started.is_empty() {
            show(&json!({ "replays": started }))?;
        }
        ended
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("filter".to_owned(), self.filter.body().into());
        body.insert("force".to_owned(), self.force.into());
        body.insert("dry_run".to_owned(), self.dry_run.into());
        body.extend(self.per_second.map(|rate| ("per_second".to_owned(), rate.into())));
        body
    }
}

fn show(answer: &Value) -> anyhow::Result<()> {
    Ok(print(&format!("{answer:#}\n"))?)
}

fn tabulate(page: &Page) -> String {
    let row = |delivery: &Delivery| {
        let last = or_dash(delivery.last_status.map(|status| status.to_string()));
        [
            delivery.id.clone(),
            time(&delivery.created_at),
            delivery.merchant.clone(),
            delivery.kind.clone(),
            delivery.event.clone(),
            delivery.state.clone(),
            last,
        ]
    };
    let headings = ["id", "created", "merchant", "kind", "event", "state", "status"];
    table(headings, page.deliveries.iter().map(row))
}

fn describe(details: &Details) -> String {
    let Details { delivery, body, requests } = details;
    let mut text = properties([
        ("id", delivery.id.clone()),
        ("merchant", delivery.merchant.clone()),
        ("kind", delivery.kind.clone()),
        ("event", delivery.event.clone()),
        ("lane", or_dash(delivery.lane.as_ref())),
        ("state", delivery.state.clone()),
        ("created", time(&delivery.created_at)),
        ("next try", or_dash(delivery.due_at.as_ref().map(time))),
        ("last", or_dash(delivery.last_outcome.as_ref())),
        ("body", body.clone()),
    ]);
    text.push('\n');
    let row = |request: &Request| {
        [
            time(&request.started_at),
            format!("{} ms", request.latency_ms),
            or_dash(request.status),
            request.detail.clone(),
            request.answer.clone(),
        ]
    };
    text + &table(["time", "took", "status", "what happened", "answer"], requests.iter().map(row))
}

fn count(report: &Report) -> String {
    let row = |count: &Count| {
        [
            time(&count.begins_at),
            count.merchant.clone(),
            count.kind.clone(),
            count.outcome.clone(),
            or_dash(count.status),
            count.requests.to_string(),
        ]
    };
    let headings = ["from", "merchant", "kind", "outcome", "status", "requests"];
    let mut text = table(headings, report.counts.iter().map(row));
    if report.truncated {
        text.push_str("The oldest are left out: ask about a shorter time, or by day.\n");
    }
    text
}
