//! Test harness: a service that only delivers, and a sandbox merchant that it delivers to.

mod api;
mod deliverer;
mod merchants;
mod replica;
mod settled;

use std::time::Duration;

use delivery::NewMessage;
use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use domain::merchant::Interface;
use domain::message_kind::{MessageKind, MessageVersion};
use messaging::{BrokerConnection, Exchange, Message, Publisher};
use platform::config::List;
use platform::database::{DatabaseError, Pool};
use platform::{Clock, Service as _};
use serde_json::{Value, json};
use testkit::{Database, Namespace, eventually};
use uuid::Uuid;

pub(crate) use api::token;
pub(crate) use deliverer::sealer;
pub(crate) use merchants::{SECRET, merchant, store_merchant};
pub(crate) use replica::{Replica, ReplicaProcess};

use deliverer::{Deliverer, topology};

/// Time for an expectation to come true, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) struct TestApp {
    pub(crate) replica: Replica,
    pub(crate) pool: Pool,
    pub(crate) sandbox: sandbox::Running,
    pub(crate) namespace: Namespace,
    pub(crate) database: Database,
    settings: Vec<(&'static str, &'static str)>,
    /// A second replica with an HTTP API; see [`TestApp::with_api`].
    api: Option<platform::Running>,
}

impl TestApp {
    pub(crate) async fn start(settings: &[(&'static str, &'static str)]) -> Self {
        let database = Database::create(migrations()).await;
        Self::start_on(database, Namespace::create(), settings).await
    }

    /// Starts with the merchant `acme`, who receives messages at the sandbox.
    pub(crate) async fn start_on(
        database: Database,
        namespace: Namespace,
        settings: &[(&'static str, &'static str)],
    ) -> Self {
        let mut sandbox_settings = sandbox::settings::Settings::for_tests().unwrap();
        sandbox_settings.journal.capacity = 100_000;
        sandbox_settings.signing.secrets = List(vec![SECRET.into()]);
        let sandbox = sandbox::start(&sandbox_settings).unwrap();
        let pool = database.pool();
        store_merchant(&pool, &merchant("acme", 1, &sandbox.url(""))).await;
        let replica = Replica::start(&database, &namespace, settings).await;
        let settings = settings.to_vec();
        Self { replica, pool, sandbox, namespace, database, settings, api: None }
    }

    pub(crate) async fn start_replica(&self) -> Replica {
        Replica::start(&self.database, &self.namespace, &self.settings).await
    }

    pub(crate) fn start_replica_process(&self) -> ReplicaProcess {
        ReplicaProcess::start(&self.database, &self.namespace, &self.settings)
    }

    pub(crate) async fn stop(self) {
        if let Some(api) = self.api {
            assert!(api.stop().await, "the API did not stop");
        }
        self.replica.stop().await;
    }

    pub(crate) async fn append(&self, messages: &[NewMessage]) -> Vec<Uuid> {
        let now = Clock::system().now();
        let mut conn = self.pool.get().await.unwrap();
        conn.transaction(async |conn| self.replica.deliveries.append(conn, now, messages).await)
            .await
            .unwrap()
    }

    /// Appends a message and lets it fail until it is dead. The endpoint then succeeds again.
    pub(crate) async fn append_dead(&self, message: NewMessage) -> Uuid {
        self.behave(json!([{"do": "respond", "status": 500, "times": 6}])).await;
        let ids = self.append(&[message]).await;
        self.wait_until_settled(TIMEOUT).await;
        ids[0]
    }

    /// Adds a merchant who receives messages at the same sandbox, below `path`.
    pub(crate) async fn add_merchant(&self, id: &str, path: &str) {
        store_merchant(&self.pool, &merchant(id, 1, &self.sandbox.url(path))).await;
        self.wait_for_merchant(id, 1).await;
    }

    /// Waits until the engine has loaded a version of a merchant.
    pub(crate) async fn wait_for_merchant(&self, id: &str, version: i64) {
        eventually("the merchant is loaded", TIMEOUT, async || {
            let (rma, now) = (Interface::Message(MessageKind::Rma), Clock::system().now());
            let resolved = self.replica.deliveries.endpoints().find(id, rma, now).ok()?;
            (resolved.version == version).then_some(())
        })
        .await;
    }

    /// Waits until the dispatcher has seen all messages so far: it delivers a later message of
    /// another merchant.
    pub(crate) async fn dispatched(&self) {
        self.add_merchant("later", "/later").await;
        let mut later = message(None, "later", 0);
        later.merchant = "later".parse().unwrap();
        let ids = self.append(&[later]).await;
        let unsettled = format!("SELECT count(*) AS n FROM deliveries WHERE id = '{}'", ids[0]);
        eventually("the later message is delivered", TIMEOUT, async || {
            (self.count(&unsettled).await == 0).then_some(())
        })
        .await;
    }

    /// Waits until all messages are delivered or dead.
    pub(crate) async fn wait_until_settled(&self, timeout: Duration) {
        eventually("everything is settled", timeout, async || {
            (self.count("SELECT count(*) AS n FROM deliveries").await == 0).then_some(())
        })
        .await;
    }

    pub(crate) async fn count(&self, query: &str) -> i64 {
        count(&self.pool, query).await
    }

    pub(crate) async fn sandbox_request(
        &self,
        method: reqwest::Method,
        path: &str,
        body: &Value,
    ) -> Value {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let request = client.request(method, self.sandbox.url(path)).json(body);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default()
    }

    /// Sets how the endpoint of `acme` responds.
    pub(crate) async fn behave(&self, steps: Value) {
        let rule = json!({"path": "/rmas", "steps": steps});
        self.sandbox_request(reqwest::Method::PUT, "/behaviour", &rule).await;
    }

    /// Returns the requests that `acme` received, in order.
    pub(crate) async fn received(&self) -> Vec<ReceivedMessage> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/journal?path=/rmas&after={after}&limit=1000");
            let page = self.sandbox_request(reqwest::Method::GET, &path, &json!({})).await;
            let page: sandbox::journal::Page = serde_json::from_value(page).unwrap();
            let Some(last) = page.entries.last() else { return all };
            after = last.number;
            all.extend(page.entries.into_iter().map(|entry| ReceivedMessage {
                id: text(&entry.headers["webhook-id"]),
                event: text(&entry.headers["x-service-event"]),
                version: text(&entry.headers["x-service-api-version"]),
                sequence: text(&entry.headers["x-service-sequence"]).parse().unwrap(),
                signature: serde_json::to_value(entry.signature).unwrap(),
                body: entry.body,
                at: entry.at,
                response: entry.response,
            }));
        }
    }

    /// Publishes directly to the broker, without the engine.
    pub(crate) fn publisher(&self) -> Publisher {
        let url = self.namespace.amqp_url().to_owned().into();
        let topology = topology(&self.namespace.name);
        let tasks = &self.replica.process.tasks;
        Publisher::new(BrokerConnection::start(&url, &topology, "test publisher", tasks))
    }

    pub(crate) async fn publish(&self, messages: &[Message]) {
        let confirms = self.publisher().publish(messages).await.unwrap();
        assert!(confirms.iter().all(Result::is_ok), "{confirms:?}");
    }

    /// Builds a message for the work queue, with additional headers.
    pub(crate) fn queue_message(&self, id: Uuid, headers: &[(&'static str, &str)]) -> Message {
        let id = id.to_string();
        let required = [
            ("delivery-id", id.as_str()),
            ("merchant", "acme"),
            ("version", "3"),
            ("event", "rma.created"),
            ("sequence", "1"),
            ("replay-number", "0"),
            ("attempt", "1"),
            ("leased-until", "9999999999999"),
        ];
        let headers = required.iter().chain(headers);
        Message {
            exchange: Exchange(String::new()),
            routing_key: format!("{}.{}", self.namespace.name, MessageKind::Rma.queue()),
            id: id.clone(),
            content_type: "application/json",
            headers: headers.map(|(name, value)| (*name, (*value).to_owned())).collect(),
            body: b"{}".to_vec(),
        }
    }
}

pub(crate) fn migrations() -> Vec<diesel_migrations::EmbeddedMigrations> {
    Deliverer::migrations()
}

pub(crate) struct ReceivedMessage {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) version: String,
    pub(crate) sequence: i64,
    pub(crate) signature: Value,
    pub(crate) body: Value,
    pub(crate) at: platform::Timestamp,
    /// How the sandbox responded.
    pub(crate) response: String,
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Builds a message for the merchant `acme`.
pub(crate) fn message(ordering_key: Option<&str>, event: &str, number: usize) -> NewMessage {
    NewMessage {
        merchant: "acme".parse().unwrap(),
        kind: MessageKind::Rma,
        version: MessageVersion(3),
        ordering_key: ordering_key.map(str::to_owned),
        event: event.to_owned(),
        body: json!({"number": number}).to_string().into(),
    }
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Returns the column `n` of a query; -1 if the query fails.
pub(crate) async fn count(pool: &Pool, query: &str) -> i64 {
    try_count(pool, query).await.unwrap_or(-1)
}

pub(crate) async fn try_count(pool: &Pool, query: &str) -> Result<i64, DatabaseError> {
    let mut conn = pool.get().await?;
    Ok(diesel::sql_query(query).get_result::<CountRow>(&mut conn).await?.n)
}

pub(crate) async fn execute(pool: &Pool, statements: &str) {
    pool.get().await.unwrap().batch_execute(statements).await.unwrap();
}
