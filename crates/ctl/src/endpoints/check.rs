//! `backhaul endpoint check`: sends sample messages to a merchant and requests variants.

use std::process::ExitCode;

use clap::Args;
use domain::access::MerchantId;
use serde_json::{Value, json};

use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, merge_lists};
use crate::output::{Column, computed, items, text_at, value};

const COLUMNS: &[Column] = &[
    value("kind", "/kind"),
    value("url", "/endpoint"),
    value("accepted", "/accepted"),
    value("status", "/status"),
    computed("latency", |result| format!("{} ms", text_at(result, "/latency_ms"))),
    value("detail", "/detail"),
];

#[derive(Args)]
pub(super) struct Check {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// Product whose variants are requested [default: SAMPLE-SKU]
    #[arg(long)]
    sku: Option<String>,
    #[command(flatten)]
    services: DeliveryServiceArgs,
}

pub(super) async fn run(operator: &OperatorArgs, check: &Check) -> anyhow::Result<ExitCode> {
    let services = check.services.clients(&operator.connect().await?)?;
    let path = ["v1", "endpoints", check.merchant.as_str(), "check"];
    let query: Vec<_> = check.sku.iter().map(|sku| ("sku", sku.as_str())).collect();
    let results =
        merge_lists(&services, "results", async |service| service.trigger(&path, &query).await);
    let (results, outcome) = results.await?;
    operator.format().print_table(&results, "/results", COLUMNS)?;
    outcome?;
    let any_failed = items(&results, "/results").iter().any(is_failed);
    Ok(if any_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A kind without an endpoint is not checked and does not fail.
fn is_failed(result: &Value) -> bool {
    result.get("accepted") != Some(&json!(true)) && result.get("outcome") != Some(&json!("not_set"))
}
