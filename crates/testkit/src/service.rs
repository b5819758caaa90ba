//! A whole service inside the test: with its own database, broker namespace and port.

mod shared;

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::{event::Event, merchant::Merchant};
use messaging::Envelope;
use platform::{Clock, Process, Running, Service, Tasks, database::Pool, health::Health, settings};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::timeout;

use crate::{Database, Namespace, clean_up, publish_merchant};
pub use shared::SharedService;
use shared::Started;

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
///
/// In a shared service, the names of the test's merchants have an end that no other test has. Requests add
/// it to the header `X-Service-Id` and events to the merchant, and responses come without it.
pub struct TestService {
    pub url: String,
    // Before the fields that delete the queues: a service that still runs would declare them again.
    running: Runs,
    pub database: Arc<Database>,
    pub namespace: Arc<Namespace>,
    pub pool: Pool,
    pub client: reqwest::Client,
    name: &'static str,
    suffix: String,
}

/// The tests that a service runs for.
enum Runs {
    ForThisTest(OwnService),
    /// The service stops with its last user.
    ForAllTests(Arc<Started>),
}

/// A service that stops at the end of its test.
struct OwnService(Option<Running>);

impl Drop for OwnService {
    fn drop(&mut self) {
        // In a runtime of one thread, the tasks of the service have ended: this is the thread.
        let is_threaded = |it: Handle| it.runtime_flavor() == RuntimeFlavor::MultiThread;
        if Handle::try_current().is_ok_and(is_threaded)
            && let Some(running) = self.0.take()
        {
            let stopped =
                async move { drop(timeout(Duration::from_secs(5), running.stop()).await) };
            clean_up(stopped);
        }
    }
}

/// The value of `[sealing] keys` in tests.
pub const fn sealing_keys() -> &'static str {
    SEALING_KEYS
}

impl TestService {
    /// Starts `S` with the given settings (`SECTION__KEY`, without the service's prefix).
    pub async fn new<S: Service>(settings: &[(&str, &str)]) -> Self {
        Self::with_clock::<S>(settings, Clock::system()).await
    }

    pub async fn with_clock<S: Service>(settings: &[(&str, &str)], clock: Clock) -> Self {
        let database = Database::create(S::migrations()).await;
        let namespace = Namespace::create();
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
        let database = Arc::new(database);
        let namespace = Arc::new(namespace);
        let url = running.url.clone();
        Self::of::<S>(
            url,
            (database, namespace),
            String::new(),
            Runs::ForThisTest(OwnService(Some(running))),
        )
    }

    fn of<S: Service>(
        url: String,
        (database, namespace): (Arc<Database>, Arc<Namespace>),
        suffix: String,
        running: Runs,
    ) -> Self {
        // Connections end with the runtime of the test that opened them, so each test has its own.
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let pool = database.pool();
        Self { url, database, namespace, pool, client, name: S::NAME, suffix, running }
    }

    /// Stops the service; its database and namespace stay.
    pub async fn stop(self) -> (Database, Namespace) {
        let Runs::ForThisTest(mut service) = self.running else {
            panic!("other tests use the service")
        };
        let running = service.0.take().unwrap();
        assert!(running.stop().await, "the service did not stop in time");
        (Arc::into_inner(self.database).unwrap(), Arc::into_inner(self.namespace).unwrap())
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
        let mut event = json!(envelope);
        if let Some(Value::String(merchant)) = event.pointer_mut("/data/merchant") {
            *merchant = self.own(merchant);
        }
        self.namespace.publish_raw(&queue, &event.to_string()).await;
    }

    /// Publishes a merchant, as auth would. The service handles the event later.
    pub async fn publish_merchant(&self, mut merchant: Merchant) {
        merchant.identifier = self.own(merchant.identifier.as_str()).parse().unwrap();
        publish_merchant(&self.namespace, self.name, merchant).await;
    }

    /// Sends a request with these headers, and returns the status and the JSON body.
    pub async fn send(
        &self,
        (method, path): (Method, &str),
        token: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.request(method, path, token);
        for (name, value) in headers {
            let of_merchant = name.eq_ignore_ascii_case("x-service-id");
            request = request
                .header(*name, if of_merchant { self.own(value) } else { (*value).to_owned() });
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = self.without_suffix(&response.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    /// Publishes a merchant, and waits until its token can read the list at `path`.
    pub async fn add_merchant(&self, merchant: Merchant, path: &str, token: &str) {
        self.publish_merchant(merchant).await;
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
    let (settings, _) = settings::load::<HashMap<String, String>>("test", &[], None, environment)
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
    let database_url = database.url();
    let workers = "1";
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
        settings::load::<S::Settings>(S::NAME, S::DEFAULTS, None, environment).unwrap();
    Running::start::<S>(platform, own, clock).await.unwrap()
}
