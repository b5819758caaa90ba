//! `backhaul shopper erase`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use domain::erasure::ERASED_EMAIL;
use serde_json::{Value, json};

use super::describe;
use crate::api_client::ApiClient;
use crate::output::{Column, Format, causes, details, items, message, table, text_at, time, value};
use crate::service_urls::RETURNS;
use crate::settings::Settings;
use crate::usage_error;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The statuses of open returns, as rma-engine tells them apart.
const OPEN: [&str; 3] = ["REQUESTED", "CREATED", "PARTIAL_REFUND"];
/// Orders that are looked up one by one. Returns of further orders are found by e-mail address.
const MAX_LOOKUPS: usize = 200;

const RETURN_COLUMNS: &[Column] = &[
    value("open return", "/rma_identifier"),
    value("status", "/status"),
    time("created", "/created_at"),
];

#[derive(Args)]
pub(crate) struct Erase {
    #[command(flatten)]
    subject: Subject,
    /// Show the orders and open returns, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Erase the data of open returns too
    #[arg(long)]
    force: bool,
    /// Wait until all services have erased the data
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

/// The data to erase.
#[derive(Args)]
#[group(required = true, multiple = true)]
struct Subject {
    /// The shopper's e-mail address
    #[arg(long)]
    email: Option<String>,
    /// Only this order; can be repeated
    #[arg(long = "order", value_name = "ORDER")]
    orders: Vec<String>,
}

impl Erase {
    pub(super) async fn run(&self, orders: &ApiClient, format: Format) -> anyhow::Result<()> {
        if self.subject.email.as_deref().is_some_and(|email| !email.contains('@')) {
            return Err(usage_error("--email must be an e-mail address"));
        }
        let found = orders.post(&["v1", "erasures"], &self.body(true)).await?;
        let open = self.open_returns(orders, items(&found, "/order_identifiers")).await?;
        if self.dry_run {
            let erased = erased_orders(orders, items(&found, "/order_identifiers")).await;
            let report = json!({
                "order_identifiers": found.get("order_identifiers"), "erased_orders": erased,
                "open_returns": open,
            });
            return format.print(&report, describe_dry_run);
        }
        if !open.is_empty() && !self.force {
            message(table(&open, RETURN_COLUMNS).trim_end());
            bail!("open returns need the data: close them first, or erase with --force");
        }
        let mut erasure = orders.post(&["v1", "erasures"], &self.body(false)).await?;
        if self.wait {
            erasure = wait(orders, &text_at(&erasure, "/id")).await?;
        }
        format.print(&erasure, describe)
    }

    fn body(&self, dry_run: bool) -> Value {
        let Subject { email, orders } = &self.subject;
        let orders = (!orders.is_empty()).then_some(orders);
        json!({
            "email": email, "order_identifiers": orders, "dry_run": dry_run, "force": self.force,
        })
    }

    /// The open returns of these orders, and those of the shopper as a giftee.
    async fn open_returns(
        &self,
        orders: &ApiClient,
        identifiers: &[Value],
    ) -> anyhow::Result<Vec<Value>> {
        let client = orders.at_service(RETURNS, &Settings::load()?)?;
        let mut queries: Vec<_> = identifiers
            .iter()
            .filter_map(Value::as_str)
            .take(MAX_LOOKUPS)
            .map(|order| ("order_identifier", order))
            .collect();
        let email = self.subject.email.as_deref().filter(|_| self.subject.orders.is_empty());
        queries.extend(email.map(|email| ("email", email)));
        let mut open = BTreeMap::new();
        for query in queries {
            let found = client.list(&["v1", "returns"], "returns", &[query], usize::MAX).await?;
            let is_open = |it: &&Value| OPEN.contains(&text_at(it, "/status").as_str());
            let found = items(&found, "/returns").iter().filter(is_open);
            open.extend(found.map(|it| (text_at(it, "/rma_identifier"), it.clone())));
        }
        Ok(open.into_values().collect())
    }
}

/// The orders whose data was erased already. A warning says that the orders could not be read.
async fn erased_orders(orders: &ApiClient, identifiers: &[Value]) -> Vec<String> {
    let mut erased = Vec::new();
    for identifier in identifiers.iter().filter_map(Value::as_str).take(MAX_LOOKUPS) {
        let query = [("identifier", identifier)];
        match orders.list(&["v1", "orders"], "orders", &query, 1).await {
            Ok(found) => {
                let email = text_at(&found, "/orders/0/document/customer/email");
                erased.extend((email == ERASED_EMAIL).then(|| identifier.to_owned()));
            }
            Err(error) => {
                let causes = causes(&error);
                message(&format!(
                    "warning: cannot tell which orders were erased already: {causes}"
                ));
                break;
            }
        }
    }
    erased
}

/// Polls until all services have confirmed. Reports the progress to standard error.
async fn wait(orders: &ApiClient, id: &str) -> anyhow::Result<Value> {
    loop {
        let erasure = orders.get(&["v1", "erasures", id]).await?;
        if text_at(&erasure, "/state") == "finished" {
            return Ok(erasure);
        }
        let confirmed = items(&erasure, "/confirmations").len();
        message(&format!("{confirmed} of 3 services have confirmed"));
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn describe_dry_run(report: &Value) -> String {
    let fields = [value("orders", "/order_identifiers"), value("erased already", "/erased_orders")];
    let open = match items(report, "/open_returns") {
        [] => "No return is open.\n".to_owned(),
        open => table(open, RETURN_COLUMNS),
    };
    format!("{}\n{open}\nNothing was erased: this is a dry run.\n", details(report, &fields))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_dry_run_says_that_nothing_was_erased() {
        let open = json!([{ "rma_identifier": "RMA-1", "status": "CREATED",
            "created_at": "2026-11-15T03:48:13Z" }]);
        let report = json!({ "order_identifiers": ["1001", "1002"], "erased_orders": ["1002"],
            "open_returns": open });
        expect![[r#"
            orders          1001, 1002
            erased already  1002

            OPEN RETURN  STATUS   CREATED
            RMA-1        CREATED  2026-11-15 03:48

            Nothing was erased: this is a dry run.
        "#]]
        .assert_eq(&describe_dry_run(&report));
        let none =
            json!({ "order_identifiers": ["1001"], "erased_orders": [], "open_returns": [] });
        let text = describe_dry_run(&none);
        assert!(text.contains("\nerased already  -\n\nNo return is open.\n"), "{text}");
    }
}
