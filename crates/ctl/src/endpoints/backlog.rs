//! `backhaul endpoint backlog`: the state of endpoints and their waiting messages, as the delivering
//! services know them.

use clap::Args;
use domain::access::MerchantId;
use serde::Serialize;
use serde_json::Value;

use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, call_each, merge_lists};
use crate::output::{Column, items, text_at, time, value};

const MAX_ENDPOINTS: usize = 1000;

const COLUMNS: &[Column] = &[
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("state", "/state"),
    time("disabled", "/disabled_at"),
    value("waiting", "/waiting"),
    value("in flight", "/in_flight"),
    value("remedy", "/remedy"),
];

#[derive(Args)]
pub(super) struct Backlog {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    services: DeliveryServiceArgs,
}

#[derive(Args, Serialize)]
struct Filter {
    /// Only endpoints of this merchant
    merchant: Option<MerchantId>,
    /// Only endpoints in this state
    #[arg(long, value_parser = ["active", "paused", "disabled"])]
    state: Option<String>,
}

pub(super) async fn run(operator: &OperatorArgs, backlog: &Backlog) -> anyhow::Result<()> {
    let services = backlog.services.clients(&operator.connect().await?)?;
    let call = async |service: &ApiClient| list(service, &backlog.filter).await;
    let (endpoints, outcome) = merge_lists(&services, "endpoints", call).await?;
    operator.format().print_table(&endpoints, "/endpoints", COLUMNS)?;
    outcome
}

async fn list(service: &ApiClient, filter: &Filter) -> anyhow::Result<Value> {
    service.list(&["v1", "endpoints"], "endpoints", filter, MAX_ENDPOINTS).await
}

/// Adds `disabled_at` to the endpoints that a 410 response disabled. Only the delivering services
/// know them; without their URLs nothing is added.
pub(super) async fn mark_disabled(client: &ApiClient, merchant: &MerchantId, listed: &mut Value) {
    let Ok(services) = DeliveryServiceArgs::default().clients(client) else { return };
    let filter = Filter { merchant: Some(merchant.clone()), state: Some("disabled".to_owned()) };
    let call = async |service: &ApiClient| list(service, &filter).await;
    let (pages, outcome) = call_each(&services, call).await;
    for endpoint in pages.iter().flat_map(|page| items(page, "/endpoints")) {
        let pointer = format!("/endpoints/{}", text_at(endpoint, "/kind"));
        if let Some(Value::Object(listed)) = listed.pointer_mut(&pointer) {
            let disabled_at = endpoint.get("disabled_at").cloned().unwrap_or_default();
            listed.insert("disabled_at".to_owned(), disabled_at);
        }
    }
    if let Err(error) = outcome {
        eprintln!("warning: disabled endpoints may be shown as active: {error:#}");
    }
}
