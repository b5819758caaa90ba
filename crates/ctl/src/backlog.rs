//! `backhaul backlog`: the events and messages that wait in all services.

use clap::Args;
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::call_each;
use crate::output::{Column, items, table, value};
use crate::service_urls::{EXCHANGE, ORDERS, RETURNS, WAREHOUSE, resolve};
use crate::settings::Settings;

const COLUMNS: &[Column] = &[
    value("service", "/service"),
    value("queue", "/queue"),
    value("waiting", "/depth"),
    value("oldest", "/oldest"),
    value("consumers", "/consumers"),
    value("dead", "/dead_letters"),
];

/// Show the events and messages that wait in each service
///
/// Asks auth and every service with a URL: $ORDERS_URL, $RMA_URL, $EXCHANGE_URL
/// and $WAREHOUSE_URL. The first row of a service is its outbox, whose events are
/// counted up to 10,000; the others are its queues.
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul backlog
  backhaul backlog --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
}

pub(crate) async fn run(Arguments { operator }: Arguments) -> anyhow::Result<()> {
    let auth = operator.connect().await?;
    let settings = Settings::load()?;
    let mut services = vec![auth.clone()];
    for service in [ORDERS, RETURNS, EXCHANGE, WAREHOUSE] {
        if settings.get(service.name).is_some() {
            services.push(auth.at(resolve(None, &settings, service)?));
        }
    }
    let call = async |service: &ApiClient| service.get(&["v1", "backlog"]).await;
    let (backlogs, outcome) = call_each(&services, call).await;
    operator.format().print(&json!({ "services": backlogs }), |response| {
        let rows: Vec<_> = items(response, "/services").iter().flat_map(rows).collect();
        table(&rows, COLUMNS)
    })?;
    outcome
}

/// A row for the outbox of a service and for each of its queues.
fn rows(backlog: &Value) -> Vec<Value> {
    let field = |pointer: &str| backlog.pointer(pointer);
    let service = field("/service");
    let unpublished = field("/outbox/unpublished");
    let oldest = field("/outbox/oldest_age_seconds").and_then(Value::as_i64);
    let oldest = oldest.map(|seconds| format!("{seconds} s"));
    let mut rows = vec![
        json!({ "service": service, "queue": "outbox", "depth": unpublished, "oldest": oldest }),
    ];
    if field("/broker").and_then(Value::as_str) == Some("unavailable") {
        rows.push(json!({ "service": service, "queue": "the broker is unavailable" }));
    }
    for mut queue in items(backlog, "/queues").iter().cloned() {
        if let Some(row) = queue.as_object_mut() {
            row.insert("service".to_owned(), json!(service));
        }
        rows.push(queue);
    }
    rows
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_service_has_a_row_for_its_outbox_and_for_each_queue() {
        let queue = json!({ "queue": "exchange.return.confirmed.v1", "depth": 7, "consumers": 2,
            "dead_letters": 1 });
        let backlogs = [
            json!({ "service": "auth", "broker": "unavailable", "queues": [],
                "outbox": { "unpublished": 3, "oldest_age_seconds": 90 } }),
            json!({ "service": "exchange", "broker": "available", "queues": [queue],
                "outbox": { "unpublished": 0, "oldest_age_seconds": null } }),
        ];
        let rows: Vec<_> = backlogs.iter().flat_map(rows).collect();
        expect![[r"
            SERVICE   QUEUE                         WAITING  OLDEST  CONSUMERS  DEAD
            auth      outbox                        3        90 s    -          -
            auth      the broker is unavailable     -        -       -          -
            exchange  outbox                        0        -       -          -
            exchange  exchange.return.confirmed.v1  7        -       2          1
        "]]
        .assert_eq(&table(&rows, COLUMNS));
    }
}
