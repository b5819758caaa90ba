//! `backhaul deliveries replay`.

use clap::{Args, value_parser};
use serde_json::{Value, json};

use super::Filter;
use super::dry_run::describe;
use crate::api_client::ApiClient;
use crate::delivery_services::{call_each, find};
use crate::output::{Format, print};
use crate::usage_error;

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
}

impl Replay {
    pub(super) async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        if let Some(id) = &self.id {
            let path = ["v1", "deliveries", id, "replay"];
            let query = [("force", if self.force { "true" } else { "false" })];
            find(services, async |service| service.trigger(&path, &query).await).await?;
            return print_json(&json!({ "replayed": id }));
        }
        if !self.all && self.filter.merchant.is_none() {
            return Err(usage_error(
                "pass a delivery id, --merchant, or --all for messages of all merchants",
            ));
        }
        let mut body = json!({
            "filter": self.filter, "all": self.all, "force": self.force, "dry_run": self.dry_run
        });
        if let (Some(rate), Some(body)) = (self.per_second, body.as_object_mut()) {
            body.insert("per_second".to_owned(), rate.into());
        }
        let call = async |service: &ApiClient| service.post(&["v1", "replays"], &body).await;
        let (replays, outcome) = call_each(services, call).await;
        let response = json!({ "replays": replays });
        // Started replays continue even if another service failed.
        match replays.as_slice() {
            [] => {}
            _ if self.dry_run => format.print(&response, describe)?,
            _ => print_json(&response)?,
        }
        outcome
    }
}

/// Prints the response of a command that has no table.
fn print_json(response: &Value) -> anyhow::Result<()> {
    Ok(print(&format!("{response:#}\n"))?)
}
