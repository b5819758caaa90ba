mod access;
mod contract;
mod drop_shipments;
mod erasing;
mod inbound;
mod locks;
mod outbound;
mod reading;
mod receipt_batches;
mod receipts;
mod stale_plans;
mod volume;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use domain::merchant::{Merchant, SigningSecret};
use domain::message_kind::MessageKind;
use domain::warehouse::message_schema;
use jsonschema::Validator;
use platform::config::List;
use platform::sealing::{self, Sealer};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use testkit::{Issuer, SharedService, TestService, eventually, publish_merchant};
use uuid::Uuid;

use crate::{App, KINDS};

const TIMEOUT: Duration = Duration::from_secs(300);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

static SCHEMAS: LazyLock<HashMap<&str, Validator>> = LazyLock::new(|| {
    let schema = |kind: MessageKind| {
        let options = jsonschema::options().should_validate_formats(true);
        (kind.default_path(), options.build(&message_schema(kind).unwrap()).unwrap())
    };
    KINDS.into_iter().map(schema).collect()
});

/// The service with the merchants acme and rival. Messages to acme go to the sandbox.
struct TestApp {
    service: TestService,
    issuer: Issuer,
    client: reqwest::Client,
    sandbox: sandbox::Running,
}

/// A message that the merchant received.
struct Arrival {
    path: String,
    event: String,
    sequence: u64,
    body: Value,
}

/// The service of all tests that need none of their own.
static SHARED: SharedService = SharedService::new(&QUEUES);
const QUEUES: [&str; 1] = ["rma-engine.unit.received.v1"];
const SETTINGS: [(&str, &str); 7] = [
    ("SEALING__KEYS", testkit::sealing_keys()),
    ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
    ("DELIVERY__HTTPS_ONLY", "false"),
    ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("DELIVERY__RETRY_BASE", "50ms"),
    ("DELIVERY__RETRY_FACTOR", "1"),
    ("DELIVERY__POLL_INTERVAL", "20ms"),
];

impl TestApp {
    /// Uses the service that all tests share.
    async fn start() -> Self {
        Self::of(SHARED.join::<App>(&SETTINGS).await).await
    }

    /// Starts a service for a test that locks its tables, uses up its memory, or looks at its queues or at all
    /// merchants.
    async fn alone() -> Self {
        let issuer = Issuer::start();
        let settings: Vec<_> = issuer.settings().into_iter().chain(SETTINGS).collect();
        let service = TestService::new::<App>(&settings).await;
        Self::of((service, issuer)).await
    }

    async fn of((service, issuer): (TestService, Issuer)) -> Self {
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 10_000;
        own.signing.secrets = List(vec![SECRET.into()]);
        let sandbox = sandbox::start(&own).unwrap();
        let client = service.client.clone();
        let app = Self { service, issuer, client, sandbox };
        let url = app.sandbox.url("");
        for (name, base_url) in [("acme", Some(url.as_str())), ("rival", None)] {
            let merchant = merchant(&app.service.own(name), base_url);
            publish_merchant(&app.service.namespace, "warehouse-notifier", merchant).await;
        }
        for name in ["acme", "rival"] {
            eventually("the merchant is stored", TIMEOUT, || async {
                let (status, _) = app.get(name, "/v1/outbound_shipments/none").await;
                let response = app.get(name, "/v1/outbound_shipments").await;
                (status == 404 && response.0 == 200).then_some(())
            })
            .await;
        }
        app
    }

    fn warehouse_token(&self) -> String {
        self.issuer.token(None, "warehouse")
    }

    /// A request of a warehouse for a merchant.
    fn request(&self, method: Method, merchant: &str, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.service.url));
        request
            .bearer_auth(self.warehouse_token())
            .header("X-Service-Id", self.service.own(merchant))
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        send(self.request(Method::POST, "acme", path).json(body)).await
    }

    async fn post_keyed(&self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, "acme", path).header("Idempotency-Key", key);
        send(request.json(body)).await
    }

    async fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        send(self.request(Method::PATCH, "acme", path).json(body)).await
    }

    async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        send(self.request(Method::PUT, "acme", path).json(body)).await
    }

    async fn get(&self, merchant: &str, path: &str) -> (u16, Value) {
        send(self.request(Method::GET, merchant, path)).await
    }

    /// Posts a request that must be accepted, and returns the response.
    #[track_caller]
    fn accept(&self, path: &str, body: &Value) -> impl Future<Output = Value> {
        let caller = std::panic::Location::caller();
        async move {
            let (status, response) = self.post(path, body).await;
            assert_eq!(status, StatusCode::CREATED, "{caller}: {response}");
            response
        }
    }

    /// Posts a request that must be rejected, and returns the invalid fields with their error codes.
    #[track_caller]
    fn reject(&self, path: &str, body: &Value) -> impl Future<Output = Vec<(String, String)>> {
        let caller = std::panic::Location::caller();
        async move {
            let (status, response) = self.post(path, body).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{caller}: {response}");
            field_errors(&response)
        }
    }

    /// Returns the messages that the merchant received so far, in order. Checks signatures and schemas.
    async fn arrivals(&self) -> Vec<Arrival> {
        let url = self.sandbox.url("/journal?limit=1000");
        let page = self.client.get(url).send().await.unwrap().text().await.unwrap();
        let page: sandbox::journal::Page = serde_json::from_str(&page).unwrap();
        let arrival = |entry: sandbox::journal::Entry| {
            assert_eq!(json!(entry.signature), "valid", "{}", entry.path);
            assert_eq!(entry.headers["x-service-api-version"], "1");
            assert_eq!(entry.headers["x-service-id"], json!(self.service.own("acme")));
            let schema = &SCHEMAS[entry.path.as_str()];
            if let Err(error) = schema.validate(&entry.body) {
                panic!("{}: {error} at {}", entry.path, error.instance_path());
            }
            Arrival {
                event: entry.headers["x-service-event"].as_str().unwrap().to_owned(),
                sequence: entry.headers["x-service-sequence"].as_str().unwrap().parse().unwrap(),
                path: entry.path,
                body: entry.body,
            }
        };
        page.entries.into_iter().map(arrival).collect()
    }

    /// Waits until `count` messages arrived. Other messages may be in flight.
    async fn wait_for_arrivals(&self, count: usize) {
        eventually("messages arrive", TIMEOUT, || async {
            (self.arrivals().await.len() == count).then_some(())
        })
        .await;
    }

    /// Waits until no message is in flight, and returns the messages that arrived.
    async fn delivered(&self, count: usize) -> Vec<Arrival> {
        eventually("all messages are delivered", TIMEOUT, || async {
            let mut conn = self.service.pool.get().await.unwrap();
            let left = "SELECT count(*) FROM deliveries WHERE merchant IN ('acme', 'rival')";
            let left = testkit::count(&mut conn, &self.service.own_query(left)).await;
            (left == 0).then_some(())
        })
        .await;
        let arrivals = self.arrivals().await;
        assert_eq!(arrivals.len(), count);
        arrivals
    }
}

async fn send(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn field_errors(response: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = response["errors"].as_array().unwrap();
    errors.iter().map(|error| (text(&error["field"]), text(&error["code"]))).collect()
}

fn field_error(field: &str, code: &str) -> Vec<(String, String)> {
    vec![(field.to_owned(), code.to_owned())]
}

fn merchant(name: &str, base_url: Option<&str>) -> Merchant {
    let keys = List(vec![testkit::sealing_keys().into()]);
    let sealer = Arc::new(Sealer::new(&sealing::Settings { keys }).unwrap());
    let mut merchant = testkit::merchant(name);
    merchant.settings.base_url = base_url.map(str::to_owned);
    let owner = merchant.identifier.clone();
    for (interface, endpoint) in &mut merchant.endpoints {
        let context = interface.sealing_context(&owner);
        endpoint.signing_secrets = vec![SigningSecret {
            id: Uuid::nil(),
            secret: sealer.seal(&context, SECRET).unwrap(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            expires_at: None,
        }];
    }
    let warehouse = json!({
        "external_identifier": "DC-7",
        "address": {
            "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501",
        },
    });
    merchant.warehouses.insert("reno".to_owned(), serde_json::from_value(warehouse).unwrap());
    merchant
}
