//! `backhaul events`: events between the services, published again.

mod republish;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, value_parser};
use serde_json::{Value, json};

use crate::api_client::{ApiClient, NO_QUERY};
use crate::connection::OperatorCommand;
use crate::delivery_services::{call_each, is_not_found, merge_lists};
use crate::output::{Column, Format, time, value};
use crate::service_urls::{EXCHANGE, ORDERS, RETURNS, WAREHOUSE};
use crate::settings::{Setting, Settings};
use republish::Republish;

const PATH: [&str; 3] = ["v1", "events", "republish"];
const STOP_PATH: [&str; 4] = ["v1", "events", "republish", "stop"];
const LIST_PATH: [&str; 3] = ["v1", "events", "republishes"];
const AUTH: &str = "auth";

/// The other services that publish events.
const SERVICES: [(&str, Setting); 4] = [
    ("order-intake", ORDERS),
    ("rma-engine", RETURNS),
    ("exchange", EXCHANGE),
    ("warehouse-notifier", WAREHOUSE),
];

const COLUMNS: &[Column] = &[
    value("service", "/service"),
    value("state", "/state"),
    time("started", "/created_at").wide(),
    time("since", "/since"),
    time("until", "/until"),
    value("events", "/total"),
    value("done", "/done"),
    value("by", "/requested_by").wide(),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Publish kept events again
    ///
    /// For a broker that lost its disks, a service whose database was restored from a
    /// backup, or a new service. Services ignore events that they have handled. Events
    /// are kept for 7 days, unless the services have other settings. A warning names
    /// the time from which a service has events, if --since is earlier.
    #[command(after_help = "\
Examples:
  backhaul events republish --since 2h --dry-run
  backhaul events republish --since '2026-11-16 08:30' --wait
  backhaul events republish --since yesterday \\
      --service order-intake --type order.stored.v1")]
    Republish(Republish),
    /// Show the progress of publishing events again
    #[command(after_help = "\
Examples:
  backhaul events progress
  backhaul events progress --service order-intake")]
    Progress(Target),
    /// Stop publishing events again
    ///
    /// Events that the broker has already stay there. It cannot be resumed; a new request
    /// starts at its own time.
    #[command(after_help = "\
Examples:
  backhaul events stop
  backhaul events stop --service order-intake")]
    Stop(Target),
    /// List the requests to publish events again, newest first, and their progress
    #[command(after_help = "\
Examples:
  backhaul events republishes
  backhaul events republishes --service order-intake --limit 5 --wide")]
    Republishes(Republishes),
}

#[derive(Args)]
pub(crate) struct Republishes {
    #[command(flatten)]
    target: Target,
    /// Maximum number of requests of each service, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u16).range(1..=200))]
    limit: u16,
}

#[derive(Args)]
pub(crate) struct Target {
    /// Only events of this service [default: auth and every service with a URL]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    service: Option<String>,
}

fn names() -> impl Iterator<Item = &'static str> {
    [AUTH].into_iter().chain(SERVICES.map(|(name, _)| name))
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let auth = operator.connect().await?;
    let format = operator.format();
    match command {
        Command::Republish(republish) => republish.run(&auth, format).await,
        Command::Progress(target) => {
            let (shown, outcome) = progress(&target.services(&auth)?).await;
            print(format, shown)?;
            outcome
        }
        Command::Stop(target) => {
            let call = async |service: &ApiClient| service.trigger(&STOP_PATH, &[]).await;
            let (shown, outcome) = call_existing(&target.services(&auth)?, call).await;
            print(format, shown)?;
            outcome
        }
        Command::Republishes(list) => list.run(&auth, format).await,
    }
}

impl Republishes {
    async fn run(&self, auth: &ApiClient, format: Format) -> anyhow::Result<()> {
        let call = async |service: &ApiClient| {
            service.list(&LIST_PATH, "republishes", NO_QUERY, self.limit.into()).await
        };
        let services = self.target.services(auth)?;
        let (page, outcome) = merge_lists(&services, "republishes", call).await?;
        format.print_table(&page, "/republishes", COLUMNS)?;
        outcome
    }
}

impl Target {
    /// A client for each service.
    fn services(&self, auth: &ApiClient) -> anyhow::Result<Vec<ApiClient>> {
        let settings = Settings::load()?;
        let is_chosen = |name: &str| self.service.as_deref().is_none_or(|chosen| chosen == name);
        let mut services = Vec::new();
        if is_chosen(AUTH) {
            services.push(auth.clone());
        }
        for (name, setting) in SERVICES {
            if is_chosen(name) && (self.service.is_some() || settings.get(setting.name).is_some()) {
                services.push(auth.at_service(setting, &settings)?);
            }
        }
        Ok(services)
    }
}

/// The newest request of each service that had one.
async fn progress(services: &[ApiClient]) -> (Vec<Value>, anyhow::Result<()>) {
    call_existing(services, async |service| service.get(&PATH).await).await
}

/// The responses of the services that have such a request, and the first error.
async fn call_existing<F>(services: &[ApiClient], call: F) -> (Vec<Value>, anyhow::Result<()>)
where
    F: AsyncFn(&ApiClient) -> anyhow::Result<Value>,
{
    let call = async |service: &ApiClient| match call(service).await {
        Err(error) if is_not_found(&error) => Ok(Value::Null),
        response => response,
    };
    let (mut shown, outcome) = call_each(services, call).await;
    shown.retain(|response| !response.is_null());
    (shown, outcome)
}

fn print(format: Format, services: Vec<Value>) -> anyhow::Result<()> {
    format.print_table(&json!({ "services": services }), "/services", COLUMNS)
}
