//! `backhaul deliveries replay`.

use clap::{Args, value_parser};
use serde_json::{Value, json};

use super::Filter;
use super::dry_run;
use super::wait::{wait_for_delivery, wait_for_replays};
use crate::api_client::ApiClient;
use crate::delivery_services::{call_each, find};
use crate::output::{Format, count, items, text_at};
use crate::{short_id, usage_error};

#[derive(Args)]
pub(super) struct Replay {
    /// Replay this delivery
    #[arg(conflicts_with = "Filter")]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Replay messages of all merchants
    #[arg(long, conflicts_with_all = ["id", "merchant"])]
    all: bool,
    /// Include messages when a newer one with the same ordering key was delivered
    #[arg(long)]
    force: bool,
    /// Only count the messages, by merchant and kind, and show the first ten
    #[arg(long, conflicts_with = "id")]
    dry_run: bool,
    /// Messages per second, up to 1000
    #[arg(long, value_name = "N", conflicts_with = "id", value_parser = value_parser!(u16).range(1..=1000))]
    per_second: Option<u16>,
    /// Show the progress until the replay is finished, or until the delivery is settled; exit with 1 if
    /// messages could not be replayed
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

impl Replay {
    pub(super) fn merchant(&self) -> Option<&domain::access::MerchantId> {
        self.filter.merchant.as_ref()
    }

    pub(super) async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        if let Some(id) = &self.id {
            return self.replay_one(services, id, format).await;
        }
        if !self.all && self.filter.merchant.is_none() {
            return Err(usage_error(
                "pass a delivery id, --merchant, or --all for messages of all merchants",
            ));
        }
        let body = self.body();
        let call = async |service: &ApiClient| service.post(&["v1", "replays"], &body).await;
        let (replays, outcome) = call_each(services, call).await;
        let response = json!({ "replays": replays });
        // Started replays continue even if another service failed.
        match replays.as_slice() {
            [] => {}
            _ if self.dry_run => format.print(&response, dry_run::describe)?,
            _ if self.wait => wait_for_replays(services, &replays, format).await?,
            _ => format.print(&response, describe_started)?,
        }
        outcome
    }

    fn body(&self) -> Value {
        let mut body = json!({
            "filter": self.filter, "all": self.all, "force": self.force, "dry_run": self.dry_run
        });
        if let (Some(rate), Some(body)) = (self.per_second, body.as_object_mut()) {
            body.insert("per_second".to_owned(), rate.into());
        }
        body
    }

    async fn replay_one(
        &self,
        services: &[ApiClient],
        id: &str,
        format: Format,
    ) -> anyhow::Result<()> {
        let id = short_id::resolve(services, "delivery", "deliveries", id).await?;
        let path = ["v1", "deliveries", &id, "replay"];
        let query = [("force", if self.force { "true" } else { "false" })];
        find(services, async |service| service.trigger(&path, &query).await).await?;
        if self.wait {
            return wait_for_delivery(services, &id, format).await;
        }
        format.print(&json!({ "replayed": id }), |_| {
            format!("The message is due now. Follow it with: backhaul deliveries show {id}\n")
        })
    }
}

/// The replays that have messages to send. A service without matches finishes its replay at once.
fn describe_started(response: &Value) -> String {
    let matched = |replay: &&Value| replay.get("matched") != Some(&json!(0));
    let started: Vec<_> = items(response, "/replays").iter().filter(matched).collect();
    if started.is_empty() {
        return "No message matches.\n".to_owned();
    }
    let lines = started.into_iter().map(|replay| {
        let matched = replay.get("matched").and_then(Value::as_u64).unwrap_or_default();
        format!(
            "Started to replay {}, {} per second. Follow it with: backhaul replays show {}\n",
            count(matched, "message"),
            text_at(replay, "/per_second"),
            text_at(replay, "/id"),
        )
    });
    lines.collect()
}
