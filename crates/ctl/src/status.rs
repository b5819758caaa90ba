//! `backhaul status`: readiness, backlog and dead letters of all services on one screen.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use domain::endpoint_state::EndpointState;
use futures_util::future::join_all;
use platform::http_client;
use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::output::{Column, command, computed, count, items, join, table, text_at, value};
use crate::service_urls::{self, AUTH, EXCHANGE, ORDERS, RETURNS, WAREHOUSE, resolve};
use crate::settings::{Setting, Settings};

/// A service that does not respond within this time is not ready.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ENDPOINTS: usize = 1000;
/// The states of endpoints in which messages do not arrive.
const UNHEALTHY: [EndpointState; 2] = [EndpointState::Failing, EndpointState::Paused];

const SERVICES: [(&str, Setting); 7] = [
    ("auth", AUTH),
    ("order-intake", ORDERS),
    ("rma-engine", RETURNS),
    ("exchange", EXCHANGE),
    ("warehouse-notifier", WAREHOUSE),
    ("console", Setting { name: "CONSOLE_URL", flag: None, description: "the console URL" }),
    ("portal", Setting { name: "PORTAL_URL", flag: None, description: "the portal URL" }),
];

const COLUMNS: &[Column] = &[
    value("service", "/service"),
    value("ready", "/ready"),
    value("unpublished", "/backlog/outbox/unpublished"),
    computed("queued", |service| queue_sum(service, "depth")),
    computed("dead letters", |service| queue_sum(service, "dead_letters")),
    computed("problem", |service| join(problems(service))),
];

/// Show readiness, backlog and dead letters of all services
///
/// Asks every service with a URL in the settings. UNPUBLISHED counts the events that wait for the broker,
/// QUEUED the messages that wait in the queues of a service. Exits with 1 if a service is not ready.
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul status
  backhaul status --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
}

pub(crate) async fn run(Arguments { operator }: Arguments) -> anyhow::Result<ExitCode> {
    let settings = Settings::load()?;
    let http = http_client(TIMEOUT)?;
    // Without auth there is no token, and the readiness of the services is all that can be shown.
    let (client, outcome) = match operator.connect().await {
        Ok(client) => (Some(client), Ok(())),
        Err(error) => (None, Err(error)),
    };
    let mut urls = Vec::new();
    for (name, setting) in SERVICES {
        if name == "auth" || settings.get(setting.name).is_some() {
            let url = match (name, &client) {
                ("auth", Some(client)) => client.base_url().clone(),
                _ => resolve(None, &settings, setting)?,
            };
            urls.push((name, url));
        }
    }
    let services = urls.iter().map(|(name, url)| read(&http, client.as_ref(), name, url));
    let response = json!({ "services": join_all(services).await });
    operator.format().print(&response, describe)?;
    outcome?;
    let is_ready = |service: &Value| service.get("ready") == Some(&json!(true));
    let all_ready = items(&response, "/services").iter().all(is_ready);
    Ok(if all_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The readiness, the backlog and the endpoints that need attention of one service.
async fn read(http: &Client, client: Option<&ApiClient>, name: &str, url: &Url) -> Value {
    let mut service = match readiness(http, url).await {
        Ok(report) => report,
        Err(error) => json!({ "ready": false, "parts": { "service": format!("{error:#}") } }),
    };
    let mut members = vec![("service", json!(name)), ("url", json!(url))];
    if let Some(client) = client {
        let client = client.at(url.clone());
        if !matches!(name, "console" | "portal") {
            members.push(("backlog", member(client.get(&["v1", "backlog"]).await)));
        }
        if matches!(name, "rma-engine" | "exchange" | "warehouse-notifier") {
            members.push(("endpoints", member(unhealthy_endpoints(&client).await)));
        }
    }
    if let Some(service) = service.as_object_mut() {
        service.extend(members.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    service
}

/// A member of the output: the response, or the error.
fn member(response: anyhow::Result<Value>) -> Value {
    response.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }))
}

/// The report of `/readyz`, which also has a body when the service is not ready.
async fn readiness(http: &Client, url: &Url) -> anyhow::Result<Value> {
    let request = http.get(service_urls::join(url, ["readyz"]));
    let response = request.send().await.context("does not respond")?;
    response.json().await.context("responds with something else than a report")
}

/// The number of endpoints in each state in which messages do not arrive.
async fn unhealthy_endpoints(client: &ApiClient) -> anyhow::Result<Value> {
    let mut counts = serde_json::Map::new();
    for state in UNHEALTHY.map(EndpointState::name) {
        let path = ["v1", "endpoints"];
        let found = client.list(&path, "endpoints", &[("state", state)], MAX_ENDPOINTS).await?;
        counts.insert(state.to_owned(), items(&found, "/endpoints").len().into());
    }
    Ok(counts.into())
}

/// A number summed over the queues of a service; a dash if it is not known.
fn queue_sum(service: &Value, name: &str) -> String {
    match service.pointer("/backlog/broker").and_then(Value::as_str) {
        Some("available") => sum(service, name).to_string(),
        _ => "-".to_owned(),
    }
}

fn sum(service: &Value, name: &str) -> u64 {
    let queues = items(service, "/backlog/queues").iter();
    queues.filter_map(|queue| queue.get(name)?.as_u64()).sum()
}

/// The parts of a service that are not ready, with their errors.
fn problems(service: &Value) -> impl Iterator<Item = String> {
    let parts = service.get("parts").and_then(Value::as_object).into_iter().flatten();
    let failed = parts.filter(|(_, result)| *result != "ok");
    let failed = failed.map(|(part, result)| format!("{part}: {}", result.as_str().unwrap_or("?")));
    let mut problems: Vec<_> = failed.collect();
    if problems.is_empty() && service.pointer("/backlog/error").is_some() {
        problems.push("backlog: not available".to_owned());
    }
    problems.into_iter()
}

/// The table and the sentences below it, which name the next command.
fn describe(response: &Value) -> String {
    let services = items(response, "/services");
    let mut text = table(services, COLUMNS);
    let total = |name: &str| services.iter().map(|service| sum(service, name)).sum::<u64>();
    let endpoints = |state: &str| -> u64 {
        let pointer = format!("/endpoints/{state}");
        services.iter().filter_map(|service| service.pointer(&pointer)?.as_u64()).sum()
    };
    let mut lines = Vec::new();
    let not_ready = services.iter().filter(|service| text_at(service, "/ready") != "yes").count();
    lines.push(match u64::try_from(not_ready).unwrap_or(u64::MAX) {
        0 => "All services are ready.".to_owned(),
        1 => "1 service is not ready.".to_owned(),
        several => format!("{several} services are not ready."),
    });
    let dead = total("dead_letters");
    if dead > 0 {
        lines.push(format!(
            "{}: backhaul backlog, backhaul deliveries list --state dead",
            count(dead, "dead letter")
        ));
    }
    for state in UNHEALTHY.map(EndpointState::name) {
        let found = endpoints(state);
        if found > 0 {
            let found = count(found, &format!("{state} endpoint"));
            let list = command(&["endpoint", "backlog", "--state", state]);
            lines.push(format!("{found}: {list}"));
        }
    }
    text.push('\n');
    text.push_str(&lines.join("\n"));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn problems_and_the_next_commands_are_on_one_screen() {
        let queue = json!({ "queue": "q", "depth": 7, "consumers": 2, "dead_letters": 1 });
        let response = json!({ "services": [
            { "service": "auth", "ready": true, "parts": { "database": "ok" },
              "backlog": { "broker": "available", "queues": [], "outbox": { "unpublished": 0 } } },
            { "service": "rma-engine", "ready": false,
              "parts": { "broker": "not connected", "database": "ok" },
              "backlog": { "broker": "available", "queues": [queue, queue],
                           "outbox": { "unpublished": 3 } },
              "endpoints": { "failing": 2, "paused": 1 } },
            { "service": "exchange", "ready": false, "backlog": { "error": "no response" },
              "parts": { "service": "does not respond" } },
        ] });
        expect![[r#"
            SERVICE     READY  UNPUBLISHED  QUEUED  DEAD LETTERS  PROBLEM
            auth        yes    0            0       0             -
            rma-engine  no     3            14      2             broker: not connected
            exchange    no     -            -       -             service: does not respond

            2 services are not ready.
            2 dead letters: backhaul backlog, backhaul deliveries list --state dead
            2 failing endpoints: backhaul endpoint backlog --state failing
            1 paused endpoint: backhaul endpoint backlog --state paused
        "#]]
        .assert_eq(&describe(&response));
        let ready = json!({ "services": [{ "service": "auth", "ready": true }] });
        assert!(describe(&ready).ends_with("\nAll services are ready.\n"));
    }
}
