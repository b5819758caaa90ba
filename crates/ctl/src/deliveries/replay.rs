//! `backhaul deliveries replay`.

use anyhow::bail;
use clap::{Args, value_parser};
use platform::Timestamp;
use serde_json::{Value, json};

use super::Filter;
use super::dry_run;
use super::superseded::{suggest_force, superseded_by};
use super::wait::{wait_for_delivery, wait_for_replays};
use crate::api_client::ApiClient;
use crate::delivery_services::{call_each, find, with_service};
use crate::output::{Format, command, count, items, text_at};
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
    #[arg(long)]
    dry_run: bool,
    /// Messages per second of each service, up to 1000
    #[arg(long, value_name = "N", conflicts_with = "id", value_parser = value_parser!(u16).range(1..=1000))]
    per_second: Option<u16>,
    /// Show the progress until all messages are queued again; with an ID, wait until the message is
    /// delivered or dead. Exit with 1 if a message could not be queued, or the one with the ID is dead
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

impl Replay {
    pub(super) fn merchant(&self) -> Option<&domain::access::MerchantId> {
        self.filter.merchant.as_ref()
    }

    pub(super) fn period(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        self.filter.period()
    }

    pub(super) async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        if self.filter.state.as_deref() == Some("pending") {
            return Err(usage_error(
                "a pending message is sent already: replay dead messages (the default), or delivered ones",
            ));
        }
        if let Some(id) = &self.id {
            let id = short_id::resolve(services, "delivery", "deliveries", id).await?;
            return if self.dry_run {
                let call = async |service: &ApiClient| self.count_one(service, &id).await;
                let response = json!({ "replays": [find(services, call).await?] });
                // A message that needs the flag is an error.
                format.print(&response, |response| dry_run::describe(response, true))
            } else {
                self.replay_one(services, &id, format).await
            };
        }
        // The client of a merchant replays messages of this merchant only.
        let is_operator = services.iter().any(ApiClient::is_operator);
        if is_operator && !self.all && self.filter.merchant.is_none() {
            return Err(usage_error(
                "pass a delivery id, --merchant, or --all for messages of all merchants",
            ));
        }
        if self.dry_run {
            let call = async |service: &ApiClient| self.count(service).await;
            let (runs, outcome) = call_each(services, call).await;
            if !runs.is_empty() {
                let response = json!({ "replays": runs });
                format.print(&response, |response| dry_run::describe(response, self.force))?;
            }
            return outcome;
        }
        let (responses, outcome) =
            call_each(services, async |service| self.start(service).await).await;
        let has_responded = !responses.is_empty();
        let replays: Vec<_> = responses.into_iter().filter(|it| !it.is_null()).collect();
        // Started replays continue even if another service failed.
        if self.wait && !replays.is_empty() {
            wait_for_replays(services, &replays, &self.list_command(&replays), format).await?;
        } else if has_responded {
            format.print(&json!({ "replays": replays }), describe_started)?;
        }
        outcome
    }

    /// The dry run of a service.
    async fn count(&self, service: &ApiClient) -> anyhow::Result<Value> {
        service.post(&["v1", "replays"], &self.body(true)).await
    }

    /// The dry run of one delivery. Fails if a replay would not send it again.
    async fn count_one(&self, service: &ApiClient, id: &str) -> anyhow::Result<Value> {
        let delivery = service.get(&["v1", "deliveries", id]).await?;
        if text_at(&delivery, "/state") == "pending" {
            bail!("delivery {id} is still pending");
        }
        if !self.force
            && let Some(newer) = superseded_by(service, &delivery).await?
        {
            bail!(
                "delivery {id} is superseded, because the newer message {newer} was delivered; \
                 --force sends it anyway"
            );
        }
        let filter = json!({
            "delivery": id, "merchant": delivery.get("merchant"), "state": delivery.get("state"),
        });
        let body = json!({ "filter": filter, "force": self.force, "dry_run": true });
        service.post(&["v1", "replays"], &body).await
    }

    /// Starts a replay in a service, or returns null if none of its messages match. The replay gets
    /// `oldest_created_at`, the time of its oldest message.
    async fn start(&self, service: &ApiClient) -> anyhow::Result<Value> {
        let counted = self.count(service).await?;
        let is_empty = counted.get("matches") == Some(&json!(0));
        if is_empty && counted.get("truncated") != Some(&json!(true)) {
            return Ok(Value::Null);
        }
        let started = service.post(&["v1", "replays"], &self.body(false)).await?;
        let mut started = with_service(started, service);
        let oldest = counted.pointer("/samples/0/created_at").cloned().unwrap_or_default();
        if let Some(started) = started.as_object_mut() {
            started.insert("oldest_created_at".to_owned(), oldest);
        }
        Ok(started)
    }

    /// The command that lists the messages of started replays.
    fn list_command(&self, replays: &[Value]) -> String {
        let mut words = vec!["deliveries", "list"];
        if let Some(merchant) = &self.filter.merchant {
            words.extend(["--merchant", merchant.as_str()]);
        }
        if let Some(kind) = &self.filter.kind {
            words.extend(["--kind", kind]);
        }
        let created = replays.iter().filter_map(|it| it.get("oldest_created_at")?.as_str());
        let oldest = created.filter_map(|at| at.parse::<Timestamp>().ok()).min();
        let from = oldest.map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string());
        if let Some(from) = &from {
            words.extend(["--from", from]);
        }
        command(&words)
    }

    fn body(&self, dry_run: bool) -> Value {
        let mut body = json!({
            "filter": self.filter, "all": self.all, "force": self.force, "dry_run": dry_run
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
        let path = ["v1", "deliveries", id, "replay"];
        let query = [("force", if self.force { "true" } else { "false" })];
        let replayed = find(services, async |service| service.trigger(&path, &query).await).await;
        replayed.map_err(suggest_force)?;
        if self.wait {
            return wait_for_delivery(services, id, format).await;
        }
        format.print(&json!({ "replayed": id }), |_| {
            let show = command(&["deliveries", "show", id]);
            format!("The message is due now. Follow it with: {show}\n")
        })
    }
}

fn describe_started(response: &Value) -> String {
    let started = items(response, "/replays");
    if started.is_empty() {
        return "No message matches.\n".to_owned();
    }
    let lines = started.iter().map(|replay| {
        let matched = replay.get("matched").and_then(Value::as_u64).unwrap_or_default();
        format!(
            "Started to replay {}, {} per second. Follow it with: {}\n",
            count(matched, "message"),
            text_at(replay, "/per_second"),
            command(&["replays", "show", &text_at(replay, "/id")]),
        )
    });
    lines.collect()
}
