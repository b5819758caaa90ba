//! A process is killed during an import. Every order that got a 200 response is stored once and has
//! one event.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::order::sample::{Orders, message};
use domain::order::{Order, OrderStored};
use futures_util::{StreamExt as _, stream};
use messaging::{BrokerConnection, Envelope, Subscription, Topology};
use platform::{Service as _, Tasks};
use testkit::{
    Database, Issuer, Namespace, Server, Servers, eventually, free_port, merchant, publish_merchant,
};

const ORDERS: usize = 20_000;
const ORDERS_PER_MESSAGE: usize = 100;
const CONCURRENCY: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(300);

/// The service as a process, on servers that can be killed.
struct TestApp {
    service: Mutex<Child>,
    port: u16,
    issuer: Issuer,
    client: reqwest::Client,
    namespace: Namespace,
    database: Database,
    servers: Servers,
}

impl TestApp {
    async fn start() -> Self {
        let servers = Servers::start();
        let database =
            Database::create_on(&servers.postgres_url(), order_intake::App::migrations()).await;
        let namespace = Namespace::create_on(servers.amqp_url(), servers.rabbitmq_api_url());
        let issuer = Issuer::start();
        let port = free_port();
        let service = Mutex::new(start(port, &database, &namespace, &issuer));
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let app = Self { service, port, issuer, client, namespace, database, servers };
        eventually("the service is ready", TIMEOUT, || async {
            let ready = app.client.get(app.url("readyz")).send().await.ok()?;
            ready.status().is_success().then_some(())
        })
        .await;
        publish_merchant(&app.namespace, "order-intake", merchant("acme")).await;
        app
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn kill_service(&self) {
        let mut service = self.service.lock().unwrap();
        service.kill().unwrap();
        service.wait().unwrap();
        *service = start(self.port, &self.database, &self.namespace, &self.issuer);
    }

    /// Sends every order until it gets a 200 response, and calls `crash` after a third of them.
    async fn import(&self, crash: impl FnOnce(&Self) + Send) {
        let token = self.issuer.token(Some("acme"), "orders");
        let responded = AtomicUsize::new(0);
        let sending = stream::iter(messages())
            .map(|message| {
                let token = &token;
                let responded = &responded;
                async move {
                    self.send(token, message).await;
                    responded.fetch_add(1, Ordering::Relaxed);
                }
            })
            .buffer_unordered(CONCURRENCY)
            .collect::<()>();
        let crashing = async {
            let third = ORDERS / ORDERS_PER_MESSAGE / 3;
            eventually("a third is stored", TIMEOUT, || {
                let enough = responded.load(Ordering::Relaxed) >= third;
                async move { enough.then_some(()) }
            })
            .await;
            tokio::task::block_in_place(|| crash(self));
            assert!(responded.load(Ordering::Relaxed) < ORDERS / ORDERS_PER_MESSAGE, "too late");
        };
        tokio::join!(sending, crashing);
    }

    async fn send(&self, token: &str, message: Vec<u8>) {
        eventually("the message is accepted", TIMEOUT, || {
            let request = self.client.post(self.url("returns_portal_orders")).bearer_auth(token);
            let request =
                request.header("Api-Version", "3").header("Content-Type", "application/json");
            let request = request.body(message.clone());
            async move {
                let status = request.send().await.ok()?.status();
                assert!(!status.is_client_error(), "{status}");
                status.is_success().then_some(())
            }
        })
        .await;
    }

    async fn check(&self) {
        let expected: BTreeSet<_> = orders().map(|order| order.identifier).collect();
        assert_eq!(self.stored().await, expected);
        let events = self.events(expected.len()).await;
        let announced: BTreeSet<_> = events.keys().cloned().collect();
        assert_eq!(announced, expected);
        let twice: Vec<_> = events.iter().filter(|(_, ids)| ids.len() > 1).collect();
        assert!(twice.is_empty(), "stored twice: {twice:?}");
    }

    async fn stored(&self) -> BTreeSet<String> {
        // Imported here, because the trait adds a `load` method to atomic counters.
        use diesel_async::RunQueryDsl as _;

        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            identifier: String,
        }
        let mut conn = AsyncPgConnection::establish(&self.database.url()).await.unwrap();
        let rows = diesel::sql_query("SELECT identifier FROM orders").load::<Row>(&mut conn).await;
        rows.unwrap().into_iter().map(|row| row.identifier).collect()
    }

    /// The ids of the events that the consumers receive, by order.
    async fn events(&self, expected: usize) -> BTreeMap<String, BTreeSet<String>> {
        let tasks = Tasks::default();
        let settings = self.namespace.settings();
        let topology = Topology::backhaul(&self.namespace.name);
        let connection = BrokerConnection::start(&settings.url, &topology, "consumer", &tasks);
        let received = RefCell::new(BTreeMap::<String, BTreeSet<_>>::new());
        let is_complete = || received.borrow().len() >= expected;
        // A subscription that fails on a busy machine is opened again and gets its messages again.
        let listen = async |event_type: &str| {
            let queue = topology.subscription_queue("rma-engine", event_type);
            while !is_complete() {
                let Ok(mut subscription) = Subscription::open(&connection, &queue, 500).await
                else {
                    continue;
                };
                while !is_complete() {
                    let Ok(batch) = subscription.next(500).await else { break };
                    for incoming in &batch {
                        let event: Envelope<OrderStored> =
                            serde_json::from_slice(&incoming.body).unwrap();
                        let order = event.data.order.identifier;
                        let id = event.id.to_string();
                        received.borrow_mut().entry(order).or_default().insert(id);
                    }
                    let last = batch.last().unwrap().delivery_tag;
                    if subscription.ack_up_to(last).await.is_err() {
                        break;
                    }
                }
            }
        };
        let listening = async {
            tokio::select! {
                () = listen("order.stored.v1") => {}
                () = listen("order.stored_in_bulk.v1") => {}
            }
        };
        if tokio::time::timeout(TIMEOUT, listening).await.is_err() {
            eprintln!("only {} of {expected} orders were announced", received.borrow().len());
        }
        received.into_inner()
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        let mut service = self.service.lock().unwrap();
        service.kill().unwrap();
        service.wait().unwrap();
    }
}

fn start(port: u16, database: &Database, namespace: &Namespace, issuer: &Issuer) -> Child {
    let port = port.to_string();
    let database = database.url();
    let settings = [
        ("HTTP__PORT", port.as_str()),
        ("DATABASE__URL", &database),
        ("BROKER__URL", namespace.amqp_url()),
        ("BROKER__NAMESPACE", &namespace.name),
        ("LIMITS__REQUESTS_PER_MINUTE", "1000000"),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_order-intake"));
    for (name, value) in settings.into_iter().chain(issuer.settings()) {
        command.env(format!("ORDER_INTAKE__{name}"), value);
    }
    command.arg("serve").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn orders() -> impl Iterator<Item = Order> {
    Orders::new(4, "2026-03-01T00:00:00Z".parse().unwrap()).take(ORDERS)
}

fn messages() -> Vec<Vec<u8>> {
    let orders: Vec<_> = orders().collect();
    orders
        .chunks(ORDERS_PER_MESSAGE)
        .map(|orders| message(orders).to_string().into_bytes())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_loses_nothing() {
    let app = TestApp::start().await;
    app.import(|app| app.kill_service()).await;
    app.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_broker_loses_nothing() {
    let app = TestApp::start().await;
    app.import(|app| {
        app.servers.kill(Server::Rabbitmq);
        app.servers.start_again(Server::Rabbitmq);
    })
    .await;
    app.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_database_loses_nothing() {
    let app = TestApp::start().await;
    app.import(|app| {
        app.servers.kill(Server::Postgres);
        app.servers.start_again(Server::Postgres);
    })
    .await;
    app.check().await;
}
