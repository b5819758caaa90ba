mod backlog;
mod concurrency;
mod contract;
mod erasing;
mod limits;
mod orders;
mod publishing;
mod resetting;
mod rules;
mod search_costs;
mod searching;
mod settings;
mod storing;
mod summary;
mod test_writer;

use std::time::Duration;

use domain::json::{Document, JsonValue};
use domain::merchant::Merchant;
use domain::order::OrderMessage;
use domain::order::sample::{Orders, message};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use testkit::{Issuer, SharedService, TestService, merchant};

use crate::App;

/// The service with the merchants acme and rival, and an HTTP client.
struct TestApp {
    service: TestService,
    issuer: Issuer,
    client: reqwest::Client,
}

/// The service of all tests that need none of their own.
static SHARED: SharedService = SharedService::new(&QUEUES);
const QUEUES: [&str; 2] = [STORED, STORED_IN_BULK];
/// The queue of rma-engine for stored orders.
const STORED: &str = "rma-engine.order.stored.v1";
const STORED_IN_BULK: &str = "rma-engine.order.stored_in_bulk.v1";

impl TestApp {
    /// Uses the service that all tests share.
    async fn start() -> Self {
        Self::of(SHARED.join::<App>(&[]).await, merchant("acme")).await
    }

    /// Starts a service for a test that stops it, locks its tables, uses up its memory, or looks at its queues or
    /// at all merchants.
    async fn alone() -> Self {
        Self::with(&[], merchant("acme")).await
    }

    async fn with(settings: &[(&str, &str)], acme: Merchant) -> Self {
        let issuer = Issuer::start();
        let settings: Vec<_> =
            issuer.settings().into_iter().chain(settings.iter().copied()).collect();
        let service = TestService::new::<App>(&settings).await;
        Self::of((service, issuer), acme).await
    }

    async fn of((service, issuer): (TestService, Issuer), acme: Merchant) -> Self {
        let client = service.client.clone();
        let app = Self { service, issuer, client };
        app.add_merchant(acme).await;
        app.add_merchant(merchant("rival")).await;
        app
    }

    /// Waits until the service knows the merchant.
    async fn add_merchant(&self, merchant: Merchant) {
        let name = merchant.identifier.to_string();
        self.service.publish_merchant(merchant).await;
        testkit::eventually("the merchant is replicated", Duration::from_secs(300), || async {
            let response = self.get("/v1/orders/none", &name).await;
            (response.status() == StatusCode::NOT_FOUND).then_some(())
        })
        .await;
    }

    fn token(&self, merchant: &str) -> String {
        self.issuer.token(Some(merchant), "orders")
    }

    fn request(&self) -> RequestBuilder {
        let url = format!("{}/returns_portal_orders", self.service.url);
        self.client.post(url).header("Api-Version", "3").header("Content-Type", "application/json")
    }

    async fn publish(&self, merchant: &str, message: &Value) -> (StatusCode, Value) {
        let request = self.request().bearer_auth(self.token(merchant));
        read(request.body(message.to_string()).send().await.unwrap()).await
    }

    async fn get(&self, path: &str, merchant: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.service.url));
        request.bearer_auth(self.token(merchant)).send().await.unwrap()
    }
}

impl TestApp {
    /// Waits until rma-engine got this number of events about stored orders.
    async fn stored_events(&self, count: usize) -> Vec<Value> {
        let listener = self.service.listener(&QUEUES).await;
        self.service.events_in(&listener, STORED, count).await
    }
}

async fn read(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    (status, response.json().await.unwrap())
}

fn sample_message(count: usize) -> Value {
    let shop = Orders::new(11, "2026-03-01T00:00:00Z".parse().unwrap());
    message(&shop.take(count).collect::<Vec<_>>())
}

fn sample_orders(count: usize) -> Vec<Value> {
    let message = Document::from(sample_message(count));
    OrderMessage::documents(message.value()).map(JsonValue::to_value).collect()
}

fn order_message(orders: &[Value]) -> Value {
    json!({ "returns_portal_order": { "orders": orders } })
}
