//! A whole service inside the test: with its own database, broker namespace and port.

use std::{collections::HashMap, time::Duration};

use domain::{event::Event, merchant::Merchant};
use messaging::Envelope;
use platform::{Clock, Process, Running, Service, Tasks, config, database::Pool, health::Health};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::{Database, Namespace, publish_merchant};

/// The time within which a service should have processed an event.
const SOON: Duration = Duration::from_secs(300);
/// The settings with which a service delivers to a merchant on this machine, without delay.
pub const DELIVERY_SETTINGS: [(&str, &str); 5] = [
    ("SEALING__KEYS", SEALING_KEYS),
    ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
    ("DELIVERY__HTTPS_ONLY", "false"),
    ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("DELIVERY__POLL_INTERVAL", "20ms"),
];
pub(crate) const SEALING_KEYS: &str = "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A service that runs until the end of the test: the base of each service's `TestApp`.
pub struct TestService {
    pub url: String,
    pub database: Database,
    pub namespace: Namespace,
    pub pool: Pool,
    pub client: reqwest::Client,
    name: &'static str,
    running: Running,
}

/// The value of `[sealing] keys` in tests.
pub fn sealing_keys() -> &'static str {
    SEALING_KEYS
}

impl TestService {
    /// Starts `S` with the given settings (`SECTION__KEY`, without the service's prefix).
    pub async fn new<S: Service>(settings: &[(&str, &str)]) -> Self {
        Self::with_clock::<S>(settings, Clock::system()).await
    }

    pub async fn with_clock<S: Service>(settings: &[(&str, &str)], clock: Clock) -> Self {
        let (database, namespace) = (Database::create(S::migrations()).await, Namespace::create());
        Self::on::<S>(settings, clock, database, namespace).await
    }

    /// Starts `S` on an existing database and namespace.
    pub async fn on<S: Service>(
        settings: &[(&str, &str)],
        clock: Clock,
        database: Database,
        namespace: Namespace,
    ) -> Self {
        let running = run::<S>(settings, clock, &database, &namespace).await;
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let (url, pool) = (running.url.clone(), database.pool());
        Self { url, database, namespace, pool, client, name: S::NAME, running }
    }

    /// Stops the service; its database and namespace stay.
    pub async fn stop(self) -> (Database, Namespace) {
        assert!(self.running.stop().await, "the service did not stop in time");
        (self.database, self.namespace)
    }

    pub fn request(&self, method: Method, path: &str, token: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(token)
    }

    pub async fn get(&self, path: &str, token: &str) -> (StatusCode, Value) {
        send(self.request(Method::GET, path, token)).await
    }

    pub async fn post(&self, path: &str, token: &str, body: &Value) -> (StatusCode, Value) {
        send(self.request(Method::POST, path, token).json(body)).await
    }

    /// Publishes an event to this service's queue, as another service would.
    pub async fn publish<E: Event>(&self, event: &E) {
        self.publish_envelope::<E>(&Envelope::new("test", Clock::system().now(), event)).await;
    }

    pub async fn publish_envelope<E: Event>(&self, envelope: &Envelope<&E>) {
        let queue = format!("{}.{}", self.name, E::TYPE);
        self.namespace.publish_raw(&queue, &json!(envelope).to_string()).await;
    }

    /// Publishes a merchant, and waits until its token can read the list at `path`.
    pub async fn add_merchant(&self, merchant: Merchant, path: &str, token: &str) {
        publish_merchant(&self.namespace, self.name, merchant).await;
        crate::eventually("the merchant is replicated", SOON, || async {
            (self.get(path, token).await.0 == StatusCode::OK).then_some(())
        })
        .await;
    }

    /// A connection that sent these bytes and reads nothing. Its receive buffer is small.
    pub async fn raw_connection(&self, request: &str) -> TcpStream {
        let address = self.url.strip_prefix("http://").unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }
}

/// Sends a request; returns the status and the JSON body, null when there is none.
pub async fn send(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
    (status, body)
}

/// A process without a service, for tests of parts of a service.
pub fn process(database: &Database) -> Process {
    let environment = HashMap::from([("TEST__DATABASE__URL".to_owned(), database.url())]);
    let (settings, _) = config::load::<HashMap<String, String>>("test", &[], None, environment)
        .unwrap_or_else(|error| panic!("{error}"));
    Process {
        pool: database.pool(),
        tasks: Tasks::default(),
        clock: Clock::system(),
        health: Health::default(),
        http: settings.http,
    }
}

/// Starts one more replica of `S` on a database and a namespace, and waits until it is ready.
pub async fn run<S: Service>(
    settings: &[(&str, &str)],
    clock: Clock,
    database: &Database,
    namespace: &Namespace,
) -> Running {
    let running = launch::<S>(settings, clock, database, namespace).await;
    let client = platform::http_client(Duration::from_secs(300)).unwrap();
    let ready = format!("{}/readyz", running.url);
    crate::eventually("the service is ready", Duration::from_secs(300), || async {
        client.get(&ready).send().await.ok()?.status().is_success().then_some(())
    })
    .await;
    running
}

/// Starts one more replica of `S` without waiting until it is ready.
pub async fn launch<S: Service>(
    settings: &[(&str, &str)],
    clock: Clock,
    database: &Database,
    namespace: &Namespace,
) -> Running {
    let prefix = S::NAME.to_uppercase().replace('-', "_");
    let (database_url, workers) = (database.url(), "1");
    let basics = [
        ("HTTP__PORT", "0"),
        ("HTTP__WORKERS", workers),
        ("DATABASE__URL", &database_url),
        // A machine that builds and tests at once may be slow to connect.
        ("DATABASE__ACQUIRE_TIMEOUT", "5s"),
        ("BROKER__URL", namespace.amqp_url()),
        ("BROKER__NAMESPACE", &namespace.name),
    ];
    let environment: HashMap<_, _> = basics
        .iter()
        .chain(settings)
        .map(|(key, value)| (format!("{prefix}__{key}"), (*value).to_owned()))
        .collect();
    let (platform, own) =
        config::load::<S::Settings>(S::NAME, S::DEFAULTS, None, environment).unwrap();
    Running::start::<S>(platform, own, clock).await.unwrap()
}
