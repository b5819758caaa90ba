//! `backhaul replays`: replays of deliveries by filter, and their progress.

use clap::{Args, Subcommand, value_parser};
use serde_json::{Map, Value};

use crate::api_client::{ApiClient, NO_QUERY};
use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, find, list_newest, with_service};
use crate::output::{Column, Format, computed, id, join, text_at, time, value};
use crate::short_id;

const COLUMNS: &[Column] = &[
    id("id", "/id"),
    time("started", "/created_at"),
    value("service", "/service").wide(),
    value("by", "/requested_by").wide(),
    value("state", "/state"),
    value("changed by", "/changed_by").wide(),
    computed("replayed", |replay| {
        format!("{} of {}", text_at(replay, "/replayed"), text_at(replay, "/matched"))
    }),
    value("skipped", "/skipped").wide(),
    value("failed", "/failed").wide(),
    computed("filter", filter),
];

const FIELDS: &[Column] = &[
    value("id", "/id"),
    value("service", "/service"),
    value("requested by", "/requested_by"),
    time("started", "/created_at"),
    value("state", "/state"),
    value("last changed by", "/changed_by"),
    time("finished", "/finished_at"),
    computed("filter", filter),
    value("force", "/force"),
    value("per second", "/per_second"),
    value("matched", "/matched"),
    value("replayed", "/replayed"),
    value("skipped", "/skipped"),
    value("failed", "/failed"),
];

/// List, show, pause, resume and stop replays of messages to merchants
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
    /// List replays, newest first
    #[command(after_help = "\
Examples:
  backhaul replays list
  backhaul replays list --limit 5 --wide")]
    List {
        /// Maximum number of replays, up to 200
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u16).range(1..=200))]
        limit: u16,
    },
    /// Show a replay and its progress
    #[command(after_help = "\
Example:
  backhaul replays show 0198c0de-0000-7abc")]
    Show(Target),
    /// Stop sending further messages until the replay is resumed
    #[command(after_help = "\
Example:
  backhaul replays pause 0198c0de-0000-7abc")]
    Pause(Target),
    /// Continue a paused replay
    #[command(after_help = "\
Example:
  backhaul replays resume 0198c0de-0000-7abc")]
    Resume(Target),
    /// End a replay; it cannot be resumed
    #[command(after_help = "\
Example:
  backhaul replays stop 0198c0de-0000-7abc")]
    Stop(Target),
}

#[derive(Args)]
struct Target {
    /// ID of the replay
    id: String,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, services, command } = arguments;
    let format = operator.format();
    let services = services.clients(&operator.connect().await?)?;
    match command {
        Command::List { limit } => {
            let (page, outcome) = list_newest(&services, "replays", NO_QUERY, limit.into()).await?;
            format.print_table(&page, "/replays", COLUMNS)?;
            outcome
        }
        Command::Show(Target { id }) => {
            let id = short_id::resolve(&services, "replay", "replays", &id).await?;
            let path = ["v1", "replays", &id];
            let replay = find(&services, async |service| {
                Ok(with_service(service.get(&path).await?, service))
            })
            .await?;
            format.print_details(&replay, FIELDS)
        }
        Command::Pause(target) => change(&services, &target, "pause", format).await,
        Command::Resume(target) => change(&services, &target, "resume", format).await,
        Command::Stop(target) => change(&services, &target, "stop", format).await,
    }
}

async fn change(
    services: &[ApiClient],
    target: &Target,
    action: &str,
    format: Format,
) -> anyhow::Result<()> {
    let id = short_id::resolve(services, "replay", "replays", &target.id).await?;
    let path = ["v1", "replays", &id, action];
    let replay = find(services, async |service| {
        Ok(with_service(service.trigger(&path, &[]).await?, service))
    })
    .await?;
    format.print_details(&replay, FIELDS)
}

/// The conditions of a replay, for example `merchant=acme status=503`.
fn filter(replay: &Value) -> String {
    let conditions = replay.get("filter").and_then(Value::as_object);
    let condition = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    join(conditions.unwrap_or(&Map::new()).iter().map(condition))
}
