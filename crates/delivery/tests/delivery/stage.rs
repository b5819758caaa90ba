//! A service that only delivers, and a merchant to deliver to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use delivery::{Deliveries, NewMessage};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Jsonb, Text};
use diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};
use domain::merchant::{Interface, Merchant, SigningSecret, SupportContact};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, BrokerConnection, Exchange, Message, Publisher, Topology};
use platform::config::List;
use platform::database::{DatabaseError, Pool};
use platform::identity::Verifier;
use platform::sealing::{self, Sealer};
use platform::{Clock, Process, config};
use serde::Deserialize;
use serde_json::{Value, json};
use testkit::{Database, Namespace, eventually};
use uuid::Uuid;

pub(crate) const SOON: Duration = Duration::from_secs(30);
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const SERVICE: &str = "deliverer";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Own {
    pub(crate) broker: messaging::Settings,
    pub(crate) delivery: delivery::Settings,
}

/// Settings as a service reads them, with these in its environment.
pub(crate) fn settings(database: &str, amqp: &str, namespace: &str, more: &[(&str, &str)]) -> Own {
    let basics = [
        ("DATABASE__URL", database),
        ("BROKER__URL", amqp),
        ("BROKER__NAMESPACE", namespace),
        ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
        ("DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
        ("DELIVERY__RETRY_BASE", "50ms"),
        ("DELIVERY__RETRY_FACTOR", "1"),
        ("DELIVERY__POLL", "20ms"),
    ];
    let environment: HashMap<_, _> = basics
        .iter()
        .chain(more)
        .map(|(key, value)| (format!("DELIVERER__{key}"), (*value).to_owned()))
        .collect();
    let defaults = [messaging::DEFAULTS, delivery::DEFAULTS];
    config::load::<Own>(SERVICE, &defaults, None, environment).unwrap().1
}

pub(crate) fn topology(namespace: &str) -> Topology {
    Topology::empty(namespace)
        .with_subscription(SERVICE, "merchant.changed.v1")
        .with_subscription(SERVICE, "token.revoked.v1")
        .with_subscription("operators", "delivery.dead.v1")
        .with_queue(MessageKind::Rma.queue())
}

pub(crate) fn sealer() -> Arc<Sealer> {
    let keys = List(vec![testkit::sealing_keys().into()]);
    Arc::new(Sealer::new(&sealing::Settings { keys }).unwrap())
}

/// One replica of the service.
pub(crate) struct Replica {
    pub(crate) process: Process,
    pub(crate) deliveries: Deliveries,
}

impl Replica {
    pub(crate) fn start(process: Process, own: Own) -> Self {
        let broker =
            Broker::start(SERVICE, &process, own.broker.clone(), topology(&own.broker.namespace));
        broker.start_relay(SERVICE, &process);
        let verifier = Arc::new(Verifier::new("test", process.clock.clone()));
        let merchants = Merchants::start(SERVICE, &process, &broker, &verifier);
        let deliveries = Deliveries::start(
            SERVICE,
            &process,
            &broker,
            &merchants,
            &sealer(),
            &[MessageKind::Rma],
            own.delivery,
        )
        .unwrap();
        Self { process, deliveries }
    }

    pub(crate) async fn ready(&self) {
        eventually("the service is ready", SOON, async || {
            self.process.health.report().await.ready.then_some(())
        })
        .await;
    }

    pub(crate) async fn leave(self) {
        assert!(self.process.tasks.drain(Duration::from_secs(10)).await, "tasks did not stop");
    }
}

pub(crate) struct Stage {
    pub(crate) replica: Replica,
    pub(crate) pool: Pool,
    pub(crate) sandbox: sandbox::Running,
    pub(crate) namespace: Namespace,
    pub(crate) database: Database,
    more: Vec<(&'static str, &'static str)>,
}

pub(crate) fn migrations() -> Vec<diesel_migrations::EmbeddedMigrations> {
    vec![messaging::MIGRATIONS, merchants::MIGRATIONS, delivery::MIGRATIONS]
}

impl Stage {
    pub(crate) async fn new(more: &[(&'static str, &'static str)]) -> Self {
        Self::set(Database::create(migrations()).await, Namespace::create(), more).await
    }

    /// With the merchant `acme`, who receives everything at a sandbox of its own.
    pub(crate) async fn set(
        database: Database,
        namespace: Namespace,
        more: &[(&'static str, &'static str)],
    ) -> Self {
        let mut own = sandbox::settings::Settings::for_tests().unwrap();
        own.journal.capacity = 100_000;
        own.signing.secrets = List(vec![SECRET.into()]);
        let sandbox = sandbox::start(&own).unwrap();
        let pool = database.pool();
        introduce(&pool, &merchant("acme", 1, &sandbox.url(""))).await;
        let own = settings(&database.url(), namespace.amqp_url(), &namespace.name, more);
        let replica = Replica::start(testkit::process(&database), own);
        replica.ready().await;
        Self { replica, pool, sandbox, namespace, database, more: more.to_vec() }
    }

    /// One more replica beside the first.
    pub(crate) async fn another(&self) -> Replica {
        let (database, namespace) = (self.database.url(), &self.namespace);
        let own = settings(&database, namespace.amqp_url(), &namespace.name, &self.more);
        let replica = Replica::start(testkit::process(&self.database), own);
        replica.ready().await;
        replica
    }

    pub(crate) async fn append(&self, messages: &[NewMessage]) -> Vec<Uuid> {
        let now = Clock::system().now();
        let mut conn = self.pool.get().await.unwrap();
        conn.transaction(async |conn| self.replica.deliveries.append(conn, now, messages).await)
            .await
            .unwrap()
    }

    /// One more merchant, who receives at the same sandbox below `path`. Before it is known its
    /// messages would fail at once.
    pub(crate) async fn introduce(&self, id: &str, path: &str) {
        introduce(&self.pool, &merchant(id, 1, &self.sandbox.url(path))).await;
        self.knows(id, 1).await;
    }

    /// Waits until the engine knows a merchant's version.
    pub(crate) async fn knows(&self, id: &str, version: i64) {
        eventually("the merchant is known", SOON, async || {
            let (rma, now) = (Interface::Message(MessageKind::Rma), Clock::system().now());
            let opened = self.replica.deliveries.endpoints().find(id, rma, now).ok()?;
            (opened.version == version).then_some(())
        })
        .await;
    }

    /// Delivers a message of another merchant that was due later than anything before: the
    /// dispatcher has looked at all of that.
    pub(crate) async fn looked(&self) {
        self.introduce("witness", "/witness").await;
        let mut proof = message(None, "proof", 0);
        proof.merchant = "witness".parse().unwrap();
        let ids = self.append(&[proof]).await;
        let under_way = format!("SELECT count(*) AS n FROM deliveries WHERE id = '{}'", ids[0]);
        eventually("the other merchant's message is delivered", SOON, async || {
            (self.number(&under_way).await == 0).then_some(())
        })
        .await;
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        number(&self.pool, query).await
    }

    /// Nothing is under way any more.
    pub(crate) async fn settled(&self, patience: Duration) {
        eventually("everything is settled", patience, async || {
            (self.number("SELECT count(*) AS n FROM deliveries").await == 0).then_some(())
        })
        .await;
    }

    pub(crate) async fn ask(&self, method: reqwest::Method, path: &str, body: &Value) -> Value {
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let request = client.request(method, self.sandbox.url(path)).json(body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default()
    }

    pub(crate) async fn behave(&self, steps: Value) {
        let rule = json!({"path": "/rmas", "steps": steps});
        self.ask(reqwest::Method::PUT, "/behaviour", &rule).await;
    }

    /// What arrived at the merchant, in order, as `webhook-id`, event and answer.
    pub(crate) async fn arrivals(&self) -> Vec<Arrival> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/journal?path=/rmas&after={after}&limit=1000");
            let page = self.ask(reqwest::Method::GET, &path, &json!({})).await;
            let page: sandbox::journal::Page = serde_json::from_value(page).unwrap();
            let Some(last) = page.entries.last() else { return all };
            after = last.number;
            all.extend(page.entries.into_iter().map(|entry| Arrival {
                id: text(&entry.headers["webhook-id"]),
                event: text(&entry.headers["x-service-event"]),
                sequence: text(&entry.headers["x-service-sequence"]).parse().unwrap(),
                signature: serde_json::to_value(entry.signature).unwrap(),
                body: entry.body,
                at: entry.at,
                answer: entry.response,
            }));
        }
    }

    pub(crate) async fn leave(self) {
        self.replica.leave().await;
    }
}

pub(crate) struct Arrival {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) sequence: i64,
    pub(crate) signature: Value,
    pub(crate) body: Value,
    pub(crate) at: platform::Timestamp,
    pub(crate) answer: String,
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A message of the merchant `acme`.
pub(crate) fn message(ordering_key: Option<&str>, event: &str, number: usize) -> NewMessage {
    NewMessage {
        merchant: "acme".parse().unwrap(),
        kind: MessageKind::Rma,
        ordering_key: ordering_key.map(str::to_owned),
        event: event.to_owned(),
        body: json!({"number": number}).to_string().into(),
    }
}

/// A merchant that signs and receives below `base_url`.
pub(crate) fn merchant(id: &str, version: i64, base_url: &str) -> Merchant {
    let mut merchant = testkit::merchant(id);
    merchant.settings.base_url = Some(base_url.to_owned());
    merchant.settings.support_contact =
        Some(SupportContact { email: format!("help@{id}.example"), name: None, phone: None });
    merchant.version = version;
    let interface = Interface::Message(MessageKind::Rma);
    merchant.endpoints.retain(|it, _| *it == interface);
    let context = interface.sealing_context(&merchant.identifier);
    for endpoint in merchant.endpoints.values_mut() {
        endpoint.signing_secrets = vec![SigningSecret {
            id: Uuid::nil(),
            secret: sealer().seal(&context, SECRET).unwrap(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            expires_at: None,
        }];
    }
    merchant
}

/// Puts a merchant into the service's copy of the merchants.
pub(crate) async fn introduce(pool: &Pool, merchant: &Merchant) {
    diesel::sql_query(
        "INSERT INTO replica_merchants (identifier, version, document, replicated_at) \
         VALUES ($1, $2, $3, now()) ON CONFLICT (identifier) DO UPDATE \
         SET version = excluded.version, document = excluded.document, replicated_at = now()",
    )
    .bind::<Text, _>(merchant.identifier.as_str())
    .bind::<BigInt, _>(merchant.version)
    .bind::<Jsonb, _>(serde_json::to_value(merchant).unwrap())
    .execute(&mut pool.get().await.unwrap())
    .await
    .unwrap();
}

#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

pub(crate) async fn number(pool: &Pool, query: &str) -> i64 {
    try_number(pool, query).await.unwrap_or(-1)
}

pub(crate) async fn try_number(pool: &Pool, query: &str) -> Result<i64, DatabaseError> {
    let mut conn = pool.get().await?;
    Ok(diesel::sql_query(query).get_result::<Counted>(&mut conn).await?.n)
}

pub(crate) async fn execute(pool: &Pool, statements: &str) {
    pool.get().await.unwrap().batch_execute(statements).await.unwrap();
}

/// Somebody who puts messages into the broker past the engine.
pub(crate) fn publisher(stage: &Stage) -> Publisher {
    let (namespace, tasks) = (&stage.namespace, &stage.replica.process.tasks);
    let url = namespace.amqp_url().to_owned().into();
    Publisher::new(BrokerConnection::start(
        &url,
        &topology(&namespace.name),
        "past the engine",
        tasks,
    ))
}

pub(crate) async fn publish(stage: &Stage, messages: &[Message]) {
    let words = publisher(stage).publish(messages).await.unwrap();
    assert!(words.iter().all(Result::is_ok), "{words:?}");
}

/// A message on the work queue as nobody queued it, with these headers more.
pub(crate) fn copy(stage: &Stage, id: Uuid, more: &[(&'static str, &str)]) -> Message {
    let id = id.to_string();
    let headers = [
        ("delivery-id", id.as_str()),
        ("merchant", "acme"),
        ("event", "rma.created"),
        ("sequence", "1"),
        ("round", "0"),
        ("attempt", "1"),
        ("lease-until", "9999999999999"),
    ];
    let headers = headers.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned()));
    Message {
        exchange: Exchange(String::new()),
        routing_key: format!("{}.{}", stage.namespace.name, MessageKind::Rma.queue()),
        id: id.clone(),
        content_type: "application/json",
        headers: headers.collect(),
        body: b"{}".to_vec(),
    }
}
