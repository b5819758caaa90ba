//! Collects everything that the services store about a shopper.

use platform::Clock;
use serde_json::{Value, json};

use crate::api_client::{ApiClient, NO_QUERY};
use crate::output::{self, items, text_at};
use crate::service_urls::{EXCHANGE, RETURNS, WAREHOUSE};
use crate::settings::Settings;

/// Prints one JSON document: orders, returns with their timelines, exchange orders, warehouse records and
/// messages to the merchant.
pub(super) async fn run(orders: &ApiClient, email: &str) -> anyhow::Result<()> {
    let settings = Settings::load()?;
    let [returns, exchange, warehouse] =
        [RETURNS, EXCHANGE, WAREHOUSE].map(|service| orders.at_service(service, &settings));
    let (returns, exchange, warehouse) = (returns?, exchange?, warehouse?);
    let query = [("customer_email", email)];
    let found = orders.list(&["v1", "orders"], "orders", &query, usize::MAX).await?;
    let mut document = Export::default();
    document.returns_of(&returns, ("email", email)).await?;
    for order in items(&found, "/orders") {
        let order = text_at(order, "/identifier");
        document.returns_of(&returns, ("order_identifier", &order)).await?;
        document.exchange_orders_of(&exchange, &order).await?;
        document.records_of(&warehouse, &order).await?;
    }
    let exported = json!({
        "email": email,
        "exported_at": Clock::system().now(),
        "orders": found.get("orders"),
        "returns": document.returns,
        "exchange_orders": document.exchange_orders,
        "warehouse_records": document.records,
        "messages": document.messages,
    });
    output::print_json(&exported)?;
    Ok(())
}

#[derive(Default)]
struct Export {
    returns: Vec<Value>,
    exchange_orders: Vec<Value>,
    records: Vec<Value>,
    messages: Vec<Value>,
}

impl Export {
    async fn returns_of(&mut self, client: &ApiClient, query: (&str, &str)) -> anyhow::Result<()> {
        let found = client.list(&["v1", "returns"], "returns", &[query], usize::MAX).await?;
        for found in items(&found, "/returns") {
            let rma = text_at(found, "/rma_identifier");
            let is_known = |it: &Value| text_at(it, "/return/rma_identifier") == rma;
            if self.returns.iter().any(is_known) {
                continue;
            }
            let shown = client.get(&["v1", "returns", &rma]).await?;
            let path = ["v1", "returns", &rma, "timeline"];
            let timeline = client.list(&path, "entries", NO_QUERY, usize::MAX).await?;
            self.returns.push(json!({ "return": shown, "timeline": timeline.get("entries") }));
            self.messages_of(client, &format!("rma:{rma}")).await?;
        }
        Ok(())
    }

    async fn exchange_orders_of(&mut self, client: &ApiClient, order: &str) -> anyhow::Result<()> {
        let query = [("original_order_id", order)];
        let path = ["v1", "exchange_orders"];
        let found = client.list(&path, "exchange_orders", &query, 1).await?;
        if !items(&found, "/exchange_orders").is_empty() {
            self.exchange_orders.push(client.get(&["v1", "exchange_orders", order]).await?);
            self.messages_of(client, &format!("order:{order}")).await?;
        }
        Ok(())
    }

    async fn records_of(&mut self, client: &ApiClient, order: &str) -> anyhow::Result<()> {
        let query = [("order_identifier", order)];
        let found =
            client.list(&["v1", "warehouse_records"], "records", &query, usize::MAX).await?;
        self.records.extend_from_slice(items(&found, "/records"));
        self.messages_of(client, &format!("order:{order}")).await
    }

    /// The messages with an ordering key, each with its body.
    async fn messages_of(&mut self, client: &ApiClient, key: &str) -> anyhow::Result<()> {
        let query = [("ordering_key", key)];
        let found = client.list(&["v1", "deliveries"], "deliveries", &query, usize::MAX).await?;
        for delivery in items(&found, "/deliveries") {
            let id = text_at(delivery, "/id");
            self.messages.push(client.get(&["v1", "deliveries", &id]).await?);
        }
        Ok(())
    }
}
