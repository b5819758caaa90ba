//! `backhaul events republish`.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::event::subscribed_types;
use platform::Timestamp;
use serde_json::{Value, json};

use super::{PATH, Target, print, progress};
use crate::api_client::ApiClient;
use crate::delivery_services::call_each;
use crate::output::{Format, message, text_at, time_at};
use crate::time_input::{check_period, parse_time};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct Republish {
    /// Events that were first published at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Timestamp,
    /// Events that were first published before this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    #[command(flatten)]
    target: Target,
    /// Only events of this type, for example order.stored.v1; can be repeated
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(subscribed_types()))]
    types: Vec<String>,
    /// Count the events, and publish none
    #[arg(long)]
    dry_run: bool,
    /// Wait until all events are published, and show the progress
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

impl Republish {
    pub(super) async fn run(&self, auth: &ApiClient, format: Format) -> anyhow::Result<()> {
        check_period(("--since", Some(self.since)), ("--until", self.until))?;
        let services = self.target.services(auth)?;
        let types = (!self.types.is_empty()).then_some(&self.types);
        let body = json!({
            "since": self.since, "until": self.until, "types": types, "dry_run": self.dry_run,
        });
        let call = async |service: &ApiClient| service.post(&PATH, &body).await;
        let (mut shown, mut outcome) = call_each(&services, call).await;
        shown.iter().for_each(|service| self.warn_of_lost_events(service));
        if self.wait && !shown.is_empty() {
            let (finished, waited) = wait(&services).await;
            (shown, outcome) = (finished, outcome.and(waited));
        }
        print(format, shown)?;
        outcome
    }

    /// Warns if the service no longer has the events from the requested time.
    fn warn_of_lost_events(&self, service: &Value) {
        let since = service.get("since").and_then(Value::as_str);
        let since = since.and_then(|since| since.parse::<Timestamp>().ok());
        if since.is_some_and(|since| since > self.since) {
            message(&format!(
                "warning: {} has no events from before {}",
                text_at(service, "/service"),
                time_at(service, "/since")
            ));
        }
    }
}

/// Polls until no service publishes events again. Reports the progress to standard error.
async fn wait(services: &[ApiClient]) -> (Vec<Value>, anyhow::Result<()>) {
    loop {
        let (shown, outcome) = progress(services).await;
        let running: Vec<_> =
            shown.iter().filter(|service| text_at(service, "/state") == "running").collect();
        if running.is_empty() || outcome.is_err() {
            return (shown, outcome);
        }
        for service in running {
            let [name, done, total] =
                ["/service", "/done", "/total"].map(|it| text_at(service, it));
            message(&format!("{name}: {done} of {total} events"));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
