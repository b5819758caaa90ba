//! A whole service inside the test: its own database, its own corner of the broker, a free port.

use std::{collections::HashMap, time::Duration};

use platform::{Clock, Process, Running, Service, Tasks, config, health::Health};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

use crate::{Database, Namespace};

/// A service that runs until the test is over.
pub struct TestService {
    pub url: String,
    pub database: Database,
    pub namespace: Namespace,
    running: Running,
}

/// A sealing key good enough for tests: what `[sealing] keys` takes.
pub fn sealing_keys() -> &'static str {
    "test:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
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

    /// Starts `S` on a database and a namespace that are there already.
    pub async fn on<S: Service>(
        settings: &[(&str, &str)],
        clock: Clock,
        database: Database,
        namespace: Namespace,
    ) -> Self {
        let running = run::<S>(settings, clock, &database, &namespace).await;
        Self { url: running.url.clone(), database, namespace, running }
    }

    /// Stops the service; its database and namespace stay.
    pub async fn stop(self) -> (Database, Namespace) {
        assert!(self.running.stop().await, "the service did not stop in time");
        (self.database, self.namespace)
    }

    /// A connection over which this was said, and nothing was read. It takes little by itself.
    pub async fn raw_connection(&self, words: &str) -> TcpStream {
        let address = self.url.strip_prefix("http://").unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
        stream.write_all(words.as_bytes()).await.unwrap();
        stream
    }
}

/// What a service is given to start with, for tests of what services are made of.
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

/// Starts one more replica of `S` beside what is there, and waits until it is ready.
pub async fn run<S: Service>(
    settings: &[(&str, &str)],
    clock: Clock,
    database: &Database,
    namespace: &Namespace,
) -> Running {
    let running = launch::<S>(settings, clock, database, namespace).await;
    let client = platform::http_client(Duration::from_secs(5)).unwrap();
    let ready = format!("{}/readyz", running.url);
    crate::eventually("the service is ready", Duration::from_secs(60), || async {
        client.get(&ready).send().await.ok()?.status().is_success().then_some(())
    })
    .await;
    running
}

/// Starts one more replica of `S`, ready or not.
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
