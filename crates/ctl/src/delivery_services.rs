//! The services that deliver messages, called as one: each keeps its own deliveries.

use std::cell::Cell;
use std::cmp::Reverse;

use anyhow::anyhow;
use clap::Args;
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::api_client::ApiClient;
use crate::api_error::ApiError;
use crate::service_urls::{EXCHANGE, RETURNS, WAREHOUSE, resolve};
use crate::settings::{Setting, Settings};
use crate::usage_error;

const SERVICES: [(&str, Setting); 3] =
    [("rma-engine", RETURNS), ("exchange", EXCHANGE), ("warehouse-notifier", WAREHOUSE)];

#[derive(Args)]
pub(crate) struct DeliveryServiceArgs {
    /// URL of one delivering service
    /// [default: $RMA_URL, $EXCHANGE_URL and $WAREHOUSE_URL]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Connection",
        verbatim_doc_comment
    )]
    service_url: Option<Url>,
}

impl DeliveryServiceArgs {
    /// A client for each delivering service.
    pub(crate) fn clients(&self, client: &ApiClient) -> anyhow::Result<Vec<ApiClient>> {
        match &self.service_url {
            Some(url) => Ok(vec![client.at(url.clone())]),
            None => configured_services(client, &Settings::load()?),
        }
    }
}

fn configured_services(client: &ApiClient, settings: &Settings) -> anyhow::Result<Vec<ApiClient>> {
    let configured = SERVICES.into_iter().filter(|(_, url)| settings.get(url.name).is_some());
    let services: Vec<_> = configured
        .map(|(name, url)| Ok(client.at(resolve(None, settings, url)?).named(name)))
        .collect::<anyhow::Result<_>>()?;
    if services.is_empty() {
        let names = SERVICES.map(|(_, url)| url.name).join(", ");
        return Err(usage_error(format!(
            "no delivering service is set: set one of {names}, or pass --service-url"
        )));
    }
    Ok(services)
}

/// The response of the service that has the resource. If none has it, a failed call is reported
/// before a 404, because the failing service may have it.
pub(crate) async fn find<F>(services: &[ApiClient], call: F) -> anyhow::Result<Value>
where
    F: AsyncFn(&ApiClient) -> anyhow::Result<Value>,
{
    let mut failed = None;
    let mut not_found = None;
    for service in services {
        match call(service).await {
            Ok(response) => return Ok(response),
            Err(error) if is_not_found(&error) => not_found = Some(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.or(not_found).unwrap_or_else(|| anyhow!("no service was called")))
}

/// The lists that the services return under `key`, as one list, and the first error. If no service
/// returns a list, that error is the result.
pub(crate) async fn merge_lists<F>(
    services: &[ApiClient],
    key: &str,
    call: F,
) -> anyhow::Result<(Value, anyhow::Result<()>)>
where
    F: AsyncFn(&ApiClient) -> anyhow::Result<Value>,
{
    let (mut responses, outcome) = call_each(services, call).await;
    if responses.is_empty() {
        outcome?;
        return Ok((json!({ key: [] }), Ok(())));
    }
    let lists = responses.iter_mut().filter_map(|response| response.get_mut(key)?.as_array_mut());
    let all: Vec<_> = lists.flat_map(std::mem::take).collect();
    Ok((json!({ key: all }), outcome))
}

/// The newest `limit` items of the list `/v1/<items>` of all services, as [`merge_lists`], with the names
/// of their services. IDs sort by creation time.
pub(crate) async fn list_newest(
    services: &[ApiClient],
    items: &str,
    query: &(impl Serialize + ?Sized),
    limit: usize,
) -> anyhow::Result<(Value, anyhow::Result<()>)> {
    let has_more = Cell::new(false);
    let call = async |service: &ApiClient| {
        let mut page = service.list(&["v1", items], items, query, limit).await?;
        has_more.set(has_more.get() || page.get("has_more") == Some(&json!(true)));
        if let Some(Value::Array(all)) = page.get_mut(items) {
            *all = all.drain(..).map(|item| with_service(item, service)).collect();
        }
        Ok(page)
    };
    let (mut page, outcome) = merge_lists(services, items, call).await?;
    if let Some(Value::Array(all)) = page.get_mut(items) {
        all.sort_by_key(|item| Reverse(item.get("id").map(Value::to_string)));
        has_more.set(has_more.get() || all.len() > limit);
        all.truncate(limit);
    }
    if let Some(page) = page.as_object_mut() {
        page.insert("has_more".to_owned(), has_more.get().into());
    }
    Ok((page, outcome))
}

/// Adds the name of the service that has an item.
pub(crate) fn with_service(mut item: Value, service: &ApiClient) -> Value {
    if let Some(item) = item.as_object_mut() {
        item.insert("service".to_owned(), service.name().into());
    }
    item
}

/// The responses of the services, and the first error.
pub(crate) async fn call_each<F>(
    services: &[ApiClient],
    call: F,
) -> (Vec<Value>, anyhow::Result<()>)
where
    F: AsyncFn(&ApiClient) -> anyhow::Result<Value>,
{
    let mut responses = Vec::new();
    let mut outcome = Ok(());
    for service in services {
        match call(service).await {
            Ok(response) => responses.push(response),
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    (responses, outcome)
}

pub(crate) fn is_not_found(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ApiError>().is_some_and(|error| error.status == StatusCode::NOT_FOUND)
}
