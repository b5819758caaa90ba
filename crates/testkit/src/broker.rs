//! A corner of the broker for each test.

use std::{
    num::{NonZeroU16, NonZeroU32, NonZeroUsize},
    time::Duration,
};

use messaging::Settings;
use reqwest::{Client, StatusCode};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;
use uuid::Uuid;

use crate::{clean_up, given};

/// Where a broker and its console listen.
#[derive(Clone)]
struct Broker {
    amqp: String,
    api: String,
}

/// A prefix of its own for exchanges and queues; what is under it goes when this is dropped.
pub struct Namespace {
    pub name: String,
    broker: Broker,
}

impl Namespace {
    /// In the broker that `scripts/test` started.
    pub fn create() -> Self {
        Self::create_on(given("BACKHAUL_TEST_AMQP_URL"), given("BACKHAUL_TEST_RABBITMQ_API_URL"))
    }

    /// In a broker of the test's own. The console's user and password are the broker's.
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
            event_retention_days: NonZeroU16::new(7).unwrap(),
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
        // The console fails now and then while a queue finds its leader: it is asked again.
        let response =
            crate::eventually("the console responds", Duration::from_secs(300), async || {
                let asked = self.broker.request(reqwest::Method::POST, &path).json(&body);
                let response = asked.send().await.unwrap();
                (response.status() != StatusCode::INTERNAL_SERVER_ERROR).then_some(response)
            })
            .await;
        if matches!(response.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) {
            return Vec::new();
        }
        response.error_for_status().unwrap().json().await.unwrap()
    }

    /// How many take messages off a queue.
    pub async fn consumers(&self, queue: &str) -> usize {
        self.about(queue).await["consumer_details"].as_array().map_or(0, Vec::len)
    }

    /// Number of messages of a queue that were delivered to consumers so far. The management API is some
    /// seconds behind.
    pub async fn handed_out(&self, queue: &str) -> u64 {
        self.about(queue).await["message_stats"]["deliver"].as_u64().unwrap_or_default()
    }

    async fn about(&self, queue: &str) -> Value {
        let path = format!("queues/{}/{}.{queue}", self.broker.virtual_host(), self.name);
        let response = self.broker.request(reqwest::Method::GET, &path).send().await.unwrap();
        response.error_for_status().unwrap().json().await.unwrap()
    }

    /// Has a queue take no more than one message, and refuse the others, about from now on.
    pub async fn bound(&self, queue: &str) {
        let name = format!("{}.{queue}", self.name);
        let body = serde_json::json!({
            "pattern": format!("^{}$", name.replace('.', "\\.")), "apply-to": "queues",
            "definition": {"max-length": 1, "overflow": "reject-publish"}
        });
        let path = format!("policies/{}/{name}", self.broker.virtual_host());
        let asked = self.broker.request(reqwest::Method::PUT, &path).json(&body).send().await;
        asked.unwrap().error_for_status().unwrap();
    }

    /// Takes away what waits in a queue.
    pub async fn purge(&self, queue: &str) {
        let name = format!("{}.{queue}", self.name);
        let path = format!("queues/{}/{name}/contents", self.broker.virtual_host());
        let asked = self.broker.request(reqwest::Method::DELETE, &path).send().await;
        asked.unwrap().error_for_status().unwrap();
    }

    /// Publishes raw bytes to a queue, as no service of ours would.
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

impl Broker {
    fn client() -> Client {
        platform::http_client(Duration::from_secs(300)).unwrap()
    }

    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let amqp = Url::parse(&self.amqp).unwrap();
        // In the URL, so that what is escaped there is read as it was meant.
        let mut url = Url::parse(&format!("{}/{path}", self.api)).unwrap();
        url.set_username(amqp.username()).unwrap();
        url.set_password(amqp.password()).unwrap();
        Self::client().request(method, url)
    }

    /// The one that the broker's URL names, escaped as it stands there.
    fn virtual_host(&self) -> String {
        let amqp = Url::parse(&self.amqp).unwrap();
        let name = amqp.path().trim_start_matches('/');
        if name.is_empty() { "%2f".to_owned() } else { name.to_owned() }
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.request(reqwest::Method::POST, path).json(body).send().await.unwrap();
        response.error_for_status().unwrap().json().await.unwrap()
    }

    /// Deletes everything under a prefix.
    async fn sweep(&self, prefix: &str) -> anyhow::Result<()> {
        for kind in ["queues", "exchanges", "policies"] {
            let place = format!("{kind}/{}", self.virtual_host());
            let all: Vec<Value> = self
                .request(reqwest::Method::GET, &format!("{place}?columns=name"))
                .send()
                .await?
                .json()
                .await?;
            for name in all
                .iter()
                .filter_map(|item| item["name"].as_str())
                .filter(|name| name.starts_with(prefix))
            {
                self.request(reqwest::Method::DELETE, &format!("{place}/{name}")).send().await?;
            }
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let (broker, prefix) = (self.broker.clone(), format!("{}.", self.name));
        clean_up(async move {
            // The test may have stopped its broker, and then there is nothing to sweep.
            if let Err(error) = broker.sweep(&prefix).await {
                eprintln!("{prefix} was not swept: {error}");
            }
        });
    }
}
