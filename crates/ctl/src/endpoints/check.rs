//! `backhaul endpoint check`: sends sample messages to a merchant and requests variants.

use std::process::ExitCode;

use clap::Args;
use domain::access::MerchantId;
use serde_json::{Value, json};

use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, merge_lists};
use crate::output::{Column, computed, items, paragraph, table, text_at, value};

const COLUMNS: &[Column] = &[
    value("kind", "/kind"),
    computed("accepted", accepted),
    value("status", "/status"),
    computed("latency", |result| match text_at(result, "/endpoint").as_str() {
        "-" => "-".to_owned(),
        _ => format!("{} ms", text_at(result, "/latency_ms")),
    }),
    value("url", "/endpoint"),
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

/// The results, and the whole URL, the error and the remedy of each failed request, and the warnings.
pub(crate) fn describe(results: &Value) -> String {
    let results = items(results, "/results");
    let mut text = table(results, COLUMNS);
    for result in results.iter().filter(|it| is_failed(it)) {
        let [kind, url, detail, remedy] =
            ["/kind", "/endpoint", "/detail", "/remedy"].map(|pointer| text_at(result, pointer));
        let url = if url == "-" { String::new() } else { format!("{url} ") };
        text.push_str(&paragraph(&format!("{kind}: {url}{detail}")));
        if remedy != "-" {
            text.push_str(&paragraph(&format!("{kind}: {remedy}")));
        }
    }
    for result in results {
        let kind = text_at(result, "/kind");
        for warning in items(result, "/warnings") {
            text.push_str(&paragraph(&format!("{kind}: warning: {}", text_at(warning, ""))));
        }
    }
    text
}

fn accepted(result: &Value) -> String {
    if is_set(result) { text_at(result, "/accepted") } else { "not set".to_owned() }
}

/// A kind without an endpoint is not checked and does not fail.
fn is_failed(result: &Value) -> bool {
    is_set(result) && result.get("accepted") != Some(&json!(true))
}

fn is_set(result: &Value) -> bool {
    result.get("outcome") != Some(&json!("not_set"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_failure_is_shown_in_full_and_a_missing_endpoint_does_not_fail() {
        let url = "https://integrations.acme-outdoor.example/backhaul/hooks/rmas";
        let results = json!({ "results": [
            { "kind": "rma", "endpoint": url, "accepted": false, "outcome": "rejected", "status": 404,
              "latency_ms": 12, "detail": "responded with 404", "remedy": null },
            { "kind": "drop-shipment-partial-cancellation", "endpoint": null, "accepted": false,
              "outcome": "not_set", "status": null, "latency_ms": 0, "detail": "no URL is set" },
        ] });
        expect![[r#"
            KIND                                ACCEPTED  STATUS  LATENCY  URL
            rma                                 no        404     12 ms    https://integrat…
            drop-shipment-partial-cancellation  not set   -       -        -
            rma: https://integrations.acme-outdoor.example/backhaul/hooks/rmas responded
            with 404
        "#]]
        .assert_eq(&describe(&results));
    }

    #[test]
    fn an_accepted_response_has_its_warnings() {
        let warning = "variant 1 (S-1) is left out: $.title: missing_field";
        let results = json!({ "results": [
            { "kind": "exchange-variants", "endpoint": "https://acme.example/sku/S/variants",
              "accepted": true, "outcome": "delivered", "status": 200, "latency_ms": 12,
              "detail": "", "warnings": [warning] },
        ] });
        assert!(!items(&results, "/results").iter().any(is_failed));
        expect![[r#"
            KIND               ACCEPTED  STATUS  LATENCY  URL
            exchange-variants  yes       200     12 ms    https://acme.example/sku/S/varian…
            exchange-variants: warning: variant 1 (S-1) is left out: $.title: missing_field
        "#]]
        .assert_eq(&describe(&results));
    }
}
