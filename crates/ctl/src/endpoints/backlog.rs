//! `backhaul endpoint backlog`: the state of endpoints and their waiting messages, as the delivering
//! services know them.

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::access::MerchantId;
use domain::endpoint_state::EndpointState;
use serde::Serialize;
use serde_json::Value;

use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, merge_lists};
use crate::output::{Column, computed, text_at, time, value};

const MAX_ENDPOINTS: usize = 1000;

const COLUMNS: &[Column] = &[
    value("merchant", "/merchant"),
    value("kind", "/kind").whole(),
    value("state", "/state"),
    time("since", "/since").leave_out(2),
    value("reason", "/reason").wide(),
    value("waiting", "/waiting"),
    time("oldest due", "/oldest_due_at").wide(),
    computed("in flight", |it| {
        format!("{} of {}", text_at(it, "/in_flight"), text_at(it, "/window"))
    })
    .wide(),
    computed("success", success_rate),
    value("p95 ms", "/recent/p95_ms").wide(),
    time("last success", "/last_success/at").leave_out(1),
    value("remedy", "/remedy").wide(),
];

#[derive(Args)]
pub(crate) struct Backlog {
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
    #[arg(long, value_parser = PossibleValuesParser::new(EndpointState::NAMES.iter().copied()))]
    state: Option<String>,
}

pub(super) async fn run(operator: &OperatorArgs, backlog: &Backlog) -> anyhow::Result<()> {
    let auth = operator.connect().await?;
    auth.require_merchant(backlog.filter.merchant.as_ref()).await?;
    let services = backlog.services.clients(&auth)?;
    let call = async |service: &ApiClient| {
        service.list(&["v1", "endpoints"], "endpoints", &backlog.filter, MAX_ENDPOINTS).await
    };
    let (endpoints, outcome) = merge_lists(&services, "endpoints", call).await?;
    operator.format().print_table(&endpoints, "/endpoints", COLUMNS)?;
    outcome
}

fn success_rate(endpoint: &Value) -> String {
    let rate = endpoint.pointer("/recent/success_rate").and_then(Value::as_f64);
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} %", rate * 100.0))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::output::table;

    #[test]
    fn the_health_of_an_endpoint_comes_before_its_queue() {
        let endpoint = json!({
            "merchant": "acme", "kind": "rma", "state": "failing", "since": "2026-11-15T03:48:13Z",
            "waiting": 7, "in_flight": 1, "window": 8, "recent": { "success_rate": 0.109 },
            "last_success": { "at": "2026-11-15T03:40:00Z" },
        });
        expect![[r#"
            MERCHANT  KIND  STATE    SINCE             WAITING  SUCCESS  LAST SUCCESS
            acme      rma   failing  2026-11-15 03:48  7        10.9 %   2026-11-15 03:40
        "#]]
        .assert_eq(&table([&endpoint], COLUMNS));
        assert_eq!(success_rate(&json!({ "recent": null })), "-");
    }
}
