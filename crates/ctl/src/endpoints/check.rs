//! `backhaul endpoint check`: sends sample messages to a merchant and requests variants.

use std::process::ExitCode;

use clap::Args;
use domain::access::MerchantId;
use serde_json::{Value, json};

use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, merge_lists};
use crate::output::{Column, computed, items, table, text_at, value};

const COLUMNS: &[Column] = &[
    value("kind", "/kind"),
    value("url", "/endpoint"),
    value("accepted", "/accepted"),
    value("status", "/status"),
    computed("latency", |result| format!("{} ms", text_at(result, "/latency_ms"))),
    value("detail", "/detail"),
];

#[derive(Args)]
pub(crate) struct Check {
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
    operator.format().print(&results, describe)?;
    outcome?;
    let any_failed = items(&results, "/results").iter().any(is_failed);
    Ok(if any_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The results, and the remedy of each refused request.
pub(crate) fn describe(results: &Value) -> String {
    let results = items(results, "/results");
    let mut text = table(results, COLUMNS);
    for result in results.iter().filter(|it| it.get("remedy").is_some_and(Value::is_string)) {
        let (kind, remedy) = (text_at(result, "/kind"), text_at(result, "/remedy"));
        text.push_str(&format!("{kind}: {remedy}\n"));
    }
    text
}

/// A kind without an endpoint is not checked and does not fail.
pub(crate) fn is_failed(result: &Value) -> bool {
    result.get("accepted") != Some(&json!(true)) && result.get("outcome") != Some(&json!("not_set"))
}
