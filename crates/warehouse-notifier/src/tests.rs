mod access;
mod contract;
mod drop_shipments;
mod inbound;
mod outbound;
mod receipts;
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
use testkit::{Issuer, TestService, eventually, introduce};
use uuid::Uuid;

use crate::{App, KINDS};

const SOON: Duration = Duration::from_secs(30);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

static SCHEMAS: LazyLock<HashMap<&str, Validator>> = LazyLock::new(|| {
    let schema = |kind: MessageKind| {
        let options = jsonschema::options().should_validate_formats(true);
        (kind.default_path(), options.build(&message_schema(kind).unwrap()).unwrap())
    };
    KINDS.into_iter().map(schema).collect()
});

/// The service with the merchants acme and rival, and the sandbox where acme receives.
struct Warehouse {
    started: TestService,
    issuer: Issuer,
    client: reqwest::Client,
    sandbox: sandbox::Running,
}

/// A message as it reached the merchant.
struct Arrival {
    path: String,
    event: String,
    sequence: u64,
    body: Value,
}

impl Warehouse {
    async fn open() -> Self {
        let issuer = Issuer::start();
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 10_000;
        own.signing.secrets = List(vec![SECRET.into()]);
        let sandbox = sandbox::start(&own).unwrap();
        let more = [
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
            ("DELIVERY__HTTPS_ONLY", "false"),
            ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
            ("DELIVERY__RETRY_BASE", "50ms"),
            ("DELIVERY__RETRY_FACTOR", "1"),
            ("DELIVERY__POLL", "20ms"),
        ];
        let settings: Vec<_> = issuer.settings().into_iter().chain(more).collect();
        let started = TestService::new::<App>(&settings).await;
        let client = platform::http_client(Duration::from_secs(30)).unwrap();
        let warehouse = Self { started, issuer, client, sandbox };
        let url = warehouse.sandbox.url("");
        warehouse.meet("acme", Some(&url)).await;
        warehouse.meet("rival", None).await;
        warehouse
    }

    /// Waits until the service knows the merchant.
    async fn meet(&self, name: &str, base_url: Option<&str>) {
        let merchant = merchant(name, base_url);
        introduce(&self.started.namespace, "warehouse-notifier", merchant).await;
        eventually("the merchant is known", SOON, || async {
            let (status, _) = self.get(name, "/v1/outbound_shipments/none").await;
            let answer = self.get(name, "/v1/outbound_shipments").await;
            (status == 404 && answer.0 == 200).then_some(())
        })
        .await;
    }

    fn warehouse_token(&self) -> String {
        self.issuer.token(None, "warehouse")
    }

    /// A request of a warehouse on behalf of a merchant.
    fn request(&self, method: Method, merchant: &str, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.started.url));
        request.bearer_auth(self.warehouse_token()).header("X-Service-Id", merchant)
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        answer(self.request(Method::POST, "acme", path).json(body)).await
    }

    async fn post_keyed(&self, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let request = self.request(Method::POST, "acme", path).header("Idempotency-Key", key);
        answer(request.json(body)).await
    }

    async fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        answer(self.request(Method::PATCH, "acme", path).json(body)).await
    }

    async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        answer(self.request(Method::PUT, "acme", path).json(body)).await
    }

    async fn get(&self, merchant: &str, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, merchant, path)).await
    }

    /// Posts what must be accepted.
    #[track_caller]
    fn accept(&self, path: &str, body: &Value) -> impl Future<Output = Value> {
        let asked_at = std::panic::Location::caller();
        async move {
            let (status, answer) = self.post(path, body).await;
            assert_eq!(status, StatusCode::CREATED, "{asked_at}: {answer}");
            answer
        }
    }

    /// Posts what must be refused, and returns the fields at fault with their codes.
    #[track_caller]
    fn refuse(&self, path: &str, body: &Value) -> impl Future<Output = Vec<(String, String)>> {
        let asked_at = std::panic::Location::caller();
        async move {
            let (status, answer) = self.post(path, body).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{asked_at}: {answer}");
            faults(&answer)
        }
    }

    /// What arrived at the merchant so far: in order, signed, and as its schema says.
    async fn arrivals(&self) -> Vec<Arrival> {
        let url = self.sandbox.url("/journal?limit=1000");
        let page = self.client.get(url).send().await.unwrap().text().await.unwrap();
        let page: sandbox::journal::Page = serde_json::from_str(&page).unwrap();
        let arrival = |entry: sandbox::journal::Entry| {
            assert_eq!(json!(entry.signature), "valid", "{}", entry.path);
            assert_eq!(entry.headers["x-service-api-version"], "1");
            assert_eq!(entry.headers["x-service-id"], "acme");
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

    /// Waits until so many messages arrived, whatever else is under way.
    async fn delivered_to_acme(&self, count: usize) {
        eventually("messages arrive", SOON, || async {
            (self.arrivals().await.len() == count).then_some(())
        })
        .await;
    }

    /// Waits until nothing is under way, and returns everything that arrived.
    async fn delivered(&self, count: usize) -> Vec<Arrival> {
        let pool = self.started.database.pool();
        eventually("everything is delivered", SOON, || async {
            (under_way(&pool).await == 0).then_some(())
        })
        .await;
        let arrivals = self.arrivals().await;
        assert_eq!(arrivals.len(), count);
        arrivals
    }
}

async fn under_way(pool: &platform::database::Pool) -> i64 {
    use diesel_async::RunQueryDsl as _;
    #[derive(diesel::QueryableByName)]
    struct Counted {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let mut conn = pool.get().await.unwrap();
    let query = diesel::sql_query("SELECT count(*) AS n FROM deliveries");
    query.get_result::<Counted>(&mut conn).await.unwrap().n
}

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn faults(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = answer["errors"].as_array().unwrap();
    errors.iter().map(|error| (text(&error["field"]), text(&error["code"]))).collect()
}

fn fault(field: &str, code: &str) -> Vec<(String, String)> {
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
    merchant
}
