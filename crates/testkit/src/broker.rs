//! A namespace in the broker for each test.

use std::{
    num::{NonZeroU16, NonZeroU32, NonZeroUsize},
    time::Duration,
};

use domain::event::Event;
use messaging::{BrokerConnection, Envelope, Message, Publisher, Settings, Topology};
use platform::Tasks;
use reqwest::{Client, StatusCode};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;
use uuid::Uuid;

use crate::{clean_up, test_variable};

/// The number of times that a queue is deleted until it is gone.
const MAX_DELETIONS: usize = 10;

/// The time in which a new queue has its leader and its dead-letter worker.
const QUEUE_START: Duration = Duration::from_millis(250);

/// The URLs of a broker and its management API.
#[derive(Clone)]
struct Broker {
    amqp: String,
    api: String,
}

/// A prefix of exchange and queue names. Dropping it deletes the exchanges and queues with this prefix.
pub struct Namespace {
    pub name: String,
    broker: Broker,
}

impl Namespace {
    /// Creates a namespace in the broker that `scripts/test` started.
    pub fn create() -> Self {
        Self::create_on(
            test_variable("BACKHAUL_TEST_AMQP_URL"),
            test_variable("BACKHAUL_TEST_RABBITMQ_API_URL"),
        )
    }

    /// Creates a namespace in another broker, whose management API has the same user and password.
    pub fn create_on(amqp: String, api: String) -> Self {
        let name = format!("t{}", Uuid::new_v4().simple());
        Self { name, broker: Broker { amqp, api } }
    }

    pub fn amqp_url(&self) -> &str {
        &self.broker.amqp
    }

    pub fn api_url(&self) -> &str {
        &self.broker.api
    }

    pub fn settings(&self) -> Settings {
        Settings {
            url: SecretString::from(self.broker.amqp.clone()),
            namespace: self.name.clone(),
            prefetch: NonZeroU16::new(256).unwrap(),
            batch_size: NonZeroUsize::new(64).unwrap(),
            relay_batch_size: NonZeroUsize::new(500).unwrap(),
            relay_poll_interval: Duration::from_millis(50),
            event_retention_days: 7,
            republish_per_second: NonZeroU32::new(10_000).unwrap(),
            inbox_retention: Duration::from_secs(8 * 24 * 3600),
        }
    }

    /// The messages waiting in a queue (named without the namespace), left where they are. A queue
    /// that is not there yet, or has no leader yet (which the console calls a bad request), holds
    /// none.
    pub async fn peek(&self, queue: &str) -> Vec<Value> {
        let body = serde_json::json!({
            "count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"
        });
        let path = format!("queues/{}/{}.{queue}/get", self.broker.virtual_host(), self.name);
        // The console fails now and then while a queue elects its leader, so the request is repeated.
        let response =
            crate::eventually("the console responds", Duration::from_secs(300), async || {
                let request = self.broker.request(reqwest::Method::POST, &path).json(&body);
                let response = request.send().await.unwrap();
                (response.status() != StatusCode::INTERNAL_SERVER_ERROR).then_some(response)
            })
            .await;
        if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) {
            return Vec::new();
        }
        response.error_for_status().unwrap().json().await.unwrap()
    }

    /// The number of consumers of a queue.
    pub async fn consumers(&self, queue: &str) -> usize {
        self.queue_details(queue).await["consumer_details"].as_array().map_or(0, Vec::len)
    }

    /// The number of messages in a queue, with those that a consumer holds. Unlike [`Self::peek`], it takes none
    /// from other consumers. The management API is some seconds behind.
    pub async fn message_count(&self, queue: &str) -> u64 {
        self.queue_details(queue).await["messages"].as_u64().unwrap_or_default()
    }

    /// Number of messages of a queue that were delivered to consumers so far. The management API is some
    /// seconds behind.
    pub async fn delivered_count(&self, queue: &str) -> u64 {
        self.queue_details(queue).await["message_stats"]["deliver"].as_u64().unwrap_or_default()
    }

    async fn queue_details(&self, queue: &str) -> Value {
        let path = format!("queues/{}/{}.{queue}", self.broker.virtual_host(), self.name);
        let response = self.broker.request(reqwest::Method::GET, &path).send().await.unwrap();
        response.error_for_status().unwrap().json().await.unwrap()
    }

    /// Limits a queue to one message, so that it rejects further ones. The policy takes effect a moment later.
    pub async fn limit_to_one_message(&self, queue: &str) {
        let name = format!("{}.{queue}", self.name);
        let body = serde_json::json!({
            "pattern": format!("^{}$", name.replace('.', "\\.")), "apply-to": "queues",
            "definition": {"max-length": 1, "overflow": "reject-publish"}
        });
        let path = format!("policies/{}/{name}", self.broker.virtual_host());
        let response = self.broker.request(reqwest::Method::PUT, &path).json(&body).send().await;
        response.unwrap().error_for_status().unwrap();
    }

    /// Deletes the messages in a queue.
    pub async fn purge(&self, queue: &str) {
        let name = format!("{}.{queue}", self.name);
        let path = format!("queues/{}/{name}/contents", self.broker.virtual_host());
        let response = self.broker.request(reqwest::Method::DELETE, &path).send().await;
        response.unwrap().error_for_status().unwrap();
    }

    /// Publishes events to all their consumers, as the relay of a service does.
    pub async fn publish_events<E: Event>(&self, envelopes: &[Envelope<&E>]) {
        let topology = Topology::backhaul(&self.name);
        let url = self.settings().url;
        let connection = BrokerConnection::start(&url, &topology, "test", &Tasks::default());
        let message = |envelope: &Envelope<&E>| Message {
            exchange: topology.events_exchange(),
            routing_key: E::TYPE.to_owned(),
            id: envelope.id.to_string(),
            content_type: "application/cloudevents+json",
            headers: Vec::new(),
            body: serde_json::to_vec(envelope).unwrap(),
        };
        let messages: Vec<_> = envelopes.iter().map(message).collect();
        let confirms = Publisher::new(connection).publish(&messages).await.unwrap();
        assert!(confirms.len() == messages.len() && confirms.iter().all(Result::is_ok));
    }

    /// Publishes a text to a queue, also one that no service would publish.
    pub async fn publish_raw(&self, queue: &str, payload: &str) {
        let body = serde_json::json!({
            "routing_key": format!("{}.{queue}", self.name), "payload": payload,
            "payload_encoding": "string", "properties": {"delivery_mode": 2}
        });
        let path = format!("exchanges/{}/amq.default/publish", self.broker.virtual_host());
        let response = self.broker.post(&path, &body).await;
        assert_eq!(response["routed"], true, "{queue} does not exist");
    }
}

thread_local! {
    /// A client for each thread, because the connections of a client end with the runtime of their test.
    static CLIENT: Client = platform::http_client(Duration::from_secs(300)).unwrap();
}

impl Broker {
    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let amqp = Url::parse(&self.amqp).unwrap();
        // The user and the password are percent-encoded in both URLs.
        let mut url = Url::parse(&format!("{}/{path}", self.api)).unwrap();
        url.set_username(amqp.username()).unwrap();
        url.set_password(amqp.password()).unwrap();
        CLIENT.with(|client| client.request(method, url))
    }

    /// The virtual host in the broker's URL, percent-encoded as it is there.
    fn virtual_host(&self) -> String {
        let amqp = Url::parse(&self.amqp).unwrap();
        let name = amqp.path().trim_start_matches('/');
        if name.is_empty() { "%2f".to_owned() } else { name.to_owned() }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.request(reqwest::Method::POST, path).json(body).send().await.unwrap();
        response.error_for_status().unwrap().json().await.unwrap()
    }

    /// Deletes the queues, exchanges and policies whose names have a prefix.
    async fn delete_all(&self, prefix: &str) -> anyhow::Result<()> {
        self.delete_queues(prefix).await?;
        for kind in ["exchanges", "policies"] {
            let path = format!("{kind}/{}", self.virtual_host());
            for name in self.names(&path, prefix).await? {
                self.delete(&path, &name).await?;
            }
        }
        Ok(())
    }

    /// Deletes queues. A busy broker does not delete all of them at once. If RabbitMQ 3.10 deletes a queue while the
    /// dead-letter worker of the queue starts, it stops all dead-lettering until it is restarted, and no other queue
    /// can start. A test may end while its service declares queues, so a queue is deleted only if it was also listed
    /// some time before.
    async fn delete_queues(&self, prefix: &str) -> anyhow::Result<()> {
        let path = format!("queues/{}", self.virtual_host());
        let mut listed_before = self.names(&path, prefix).await?;
        for _ in 0..MAX_DELETIONS {
            if listed_before.is_empty() {
                break;
            }
            tokio::time::sleep(QUEUE_START).await;
            let listed = self.names(&path, prefix).await?;
            for name in listed.iter().filter(|name| listed_before.contains(name)) {
                self.delete(&path, name).await?;
            }
            listed_before = self.names(&path, prefix).await?;
        }
        Ok(())
    }

    async fn delete(&self, path: &str, name: &str) -> anyhow::Result<()> {
        self.request(reqwest::Method::DELETE, &format!("{path}/{name}")).send().await?;
        Ok(())
    }

    async fn names(&self, path: &str, prefix: &str) -> anyhow::Result<Vec<String>> {
        let path = format!("{path}?columns=name");
        let all: Vec<Value> = self
            .request(reqwest::Method::GET, &path)
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        let names = all.iter().filter_map(|item| item["name"].as_str());
        Ok(names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let broker = self.broker.clone();
        let prefix = format!("{}.", self.name);
        clean_up(async move {
            // The test may have stopped its broker, and then there is nothing to delete.
            if let Err(error) = broker.delete_all(&prefix).await {
                eprintln!("{prefix}* was not deleted: {error}");
            }
        });
    }
}
