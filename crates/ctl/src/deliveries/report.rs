//! `backhaul deliveries report`.

use std::cell::Cell;

use clap::Args;
use domain::access::MerchantId;
use platform::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::delivery_services::merge_lists;
use crate::output::{Column, Format, computed, message, text_at, time, value};
use crate::time_input::parse_time;

const ENDPOINT_COLUMNS: &[Column] = &[
    value("merchant", "/merchant"),
    value("endpoint", "/kind"),
    computed("success", success_rate),
    value("attempts", "/attempts"),
    value("failed", "/failed"),
    computed("p50", |endpoint| format!("{} ms", text_at(endpoint, "/p50_ms"))),
    computed("p95", |endpoint| format!("{} ms", text_at(endpoint, "/p95_ms"))),
];

const PERIOD_COLUMNS: &[Column] = &[
    time("from", "/period_start_at"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("outcome", "/outcome"),
    value("status", "/status"),
    value("attempts", "/attempts"),
];

#[derive(Args, Serialize)]
pub(super) struct Report {
    /// Only messages to this merchant
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Start of the report [default: 24 hours ago]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// End of the report [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
    /// Count the attempts of each hour or day by outcome and status code instead
    #[arg(long, value_parser = ["hour", "day"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl Report {
    pub(super) fn merchant(&self) -> Option<&MerchantId> {
        self.merchant.as_ref()
    }

    pub(super) fn period(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (self.from, self.to)
    }

    pub(super) async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        let (resource, list, columns) = match self.by {
            Some(_) => ("deliveries", "counts", PERIOD_COLUMNS),
            None => ("endpoints", "endpoints", ENDPOINT_COLUMNS),
        };
        let is_truncated = Cell::new(false);
        let call = async |service: &ApiClient| {
            let report = service.search(&["v1", "reports", resource], self).await?;
            is_truncated.set(is_truncated.get() || report.get("truncated") == Some(&json!(true)));
            Ok(report)
        };
        let (mut report, outcome) = merge_lists(services, list, call).await?;
        if let Some(report) = report.as_object_mut() {
            report.insert("truncated".to_owned(), is_truncated.get().into());
            if let Some(Value::Array(endpoints)) = report.get_mut("endpoints") {
                endpoints.sort_by(worst_first);
            }
            if let Some(Value::Array(counts)) = report.get_mut("counts") {
                counts.sort_by_key(|count| text_at(count, "/period_start_at"));
            }
        }
        format.print_table(&report, &format!("/{list}"), columns)?;
        if is_truncated.get() && format == Format::Text {
            message("the report is not complete: choose a shorter time, --merchant or --by day");
        }
        outcome
    }
}

fn number(endpoint: &Value, name: &str) -> f64 {
    endpoint.get(name).and_then(Value::as_f64).unwrap_or_default()
}

/// Each service sorts its endpoints in this order.
fn worst_first(one: &Value, other: &Value) -> std::cmp::Ordering {
    let by_rate = number(one, "success_rate").total_cmp(&number(other, "success_rate"));
    by_rate
        .then(number(other, "failed").total_cmp(&number(one, "failed")))
        .then(number(other, "p95_ms").total_cmp(&number(one, "p95_ms")))
}

fn success_rate(endpoint: &Value) -> String {
    format!("{:.1} %", number(endpoint, "success_rate") * 100.0)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::table;

    #[test]
    fn the_worst_endpoint_of_all_services_is_first() {
        let endpoint = |merchant: &str, kind: &str, rate: f64, failed: u64, p95: u64| {
            json!({ "merchant": merchant, "kind": kind, "attempts": 200, "success_rate": rate,
                "failed": failed, "p50_ms": 45, "p95_ms": p95 })
        };
        let mut endpoints = [
            endpoint("acme", "rma", 1.0, 0, 90),
            endpoint("acme", "exchange-order", 0.985, 3, 120),
            endpoint("nova", "rma", 0.0, 200, 20_000),
            endpoint("nova", "outbound-asn", 1.0, 0, 400),
        ];
        endpoints.sort_by(worst_first);
        expect![[r#"
            MERCHANT  ENDPOINT        SUCCESS  ATTEMPTS  FAILED  P50    P95
            nova      rma             0.0 %    200       200     45 ms  20000 ms
            acme      exchange-order  98.5 %   200       3       45 ms  120 ms
            nova      outbound-asn    100.0 %  200       0       45 ms  400 ms
            acme      rma             100.0 %  200       0       45 ms  90 ms
        "#]]
        .assert_eq(&table(&endpoints, ENDPOINT_COLUMNS));
    }
}
