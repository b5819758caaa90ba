//! The users of `deploy/rabbitmq` on a real broker have the permissions they need, and no more.

use std::time::Duration;

use messaging::{BrokerConnection, BrokerError, Message, Publisher, Subscription, Topology};
use platform::Tasks;
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::TIMEOUT;

/// A virtual host with the topology and the users of the definitions.
struct Installation {
    name: String,
    amqp: url::Url,
    api: String,
}

impl Installation {
    async fn create() -> Self {
        let given = |name: &str| std::env::vars().find(|(known, _)| known == name).unwrap().1;
        let name = format!("t{}", Uuid::new_v4().simple());
        let amqp = url::Url::parse(&given("BACKHAUL_TEST_AMQP_URL")).unwrap();
        let installation = Self { name, amqp, api: given("BACKHAUL_TEST_RABBITMQ_API_URL") };
        let file = include_str!("../../../../deploy/rabbitmq/definitions.json");
        let mut definitions: Value = serde_json::from_str(file).unwrap();
        for (section, rows) in definitions.as_object_mut().unwrap() {
            for row in
                rows.as_array_mut().unwrap().iter_mut().map(|row| row.as_object_mut().unwrap())
            {
                match section.as_str() {
                    "vhosts" => drop(row.insert("name".to_owned(), json!(installation.name))),
                    "users" => {
                        let user = row["name"].as_str().unwrap().to_owned();
                        row.insert("name".to_owned(), json!(installation.user(&user)));
                        row.remove("password_hash");
                        row.insert("password".to_owned(), json!("secret"));
                    }
                    _ => drop(row.insert("vhost".to_owned(), json!(installation.name))),
                }
                if let Some(user) = row.get("user").and_then(Value::as_str).map(str::to_owned) {
                    row.insert("user".to_owned(), json!(installation.user(&user)));
                }
            }
        }
        installation.request("POST", "definitions", &definitions).await;
        installation
    }

    fn user(&self, service: &str) -> String {
        format!("{}-{service}", self.name)
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        // Credentials stay in the URL, where they are percent-encoded.
        let mut url = url::Url::parse(&format!("{}/{path}", self.api)).unwrap();
        url.set_username(self.amqp.username()).unwrap();
        url.set_password(self.amqp.password()).unwrap();
        let request = client.request(method.parse().unwrap(), url).json(body);
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
        response.json().await.unwrap_or_default()
    }

    /// A connection with the production permissions of a service.
    fn connect(&self, service: &str, tasks: &Tasks) -> BrokerConnection {
        let mut url = self.amqp.clone();
        url.set_username(&self.user(service)).unwrap();
        url.set_password(Some("secret")).unwrap();
        url.set_path(&self.name);
        BrokerConnection::start(
            &SecretString::from(url.to_string()),
            &Topology::backhaul(""),
            service,
            tasks,
        )
    }

    async fn remove(self) {
        self.request("DELETE", &format!("vhosts/{}", self.name), &Value::Null).await;
        for service in ["auth", "order-intake", "rma-engine", "exchange", "warehouse-notifier"] {
            let path = format!("users/{}", self.user(service));
            self.request("DELETE", &path, &Value::Null).await;
        }
        self.request("DELETE", &format!("users/{}", self.user("operator")), &Value::Null).await;
    }
}

fn event(routing_key: &str) -> Message {
    Message {
        exchange: Topology::backhaul("").events_exchange(),
        routing_key: routing_key.to_owned(),
        id: Uuid::new_v4().to_string(),
        content_type: "application/json",
        headers: Vec::new(),
        body: b"{}".to_vec(),
    }
}

/// Succeeds if the broker refused access, not for any other error.
fn access_refused(error: Option<BrokerError>) -> Option<()> {
    let error = error.expect("access was granted");
    format!("{error:?}").contains("ACCESS_REFUSED").then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_the_permissions_it_needs_and_no_more() {
    let installation = Installation::create().await;
    let tasks = Tasks::default();
    let connection = installation.connect("order-intake", &tasks);
    eventually("connected without permission to declare", TIMEOUT, async || {
        connection.state().ok()
    })
    .await;

    let publisher = Publisher::new(connection.clone());
    assert_eq!(publisher.publish(&[event("order.stored.v1")]).await.unwrap(), [Ok(())]);
    let to_work_queue =
        Message { exchange: messaging::Exchange(String::new()), ..event("notify.rma") };
    for (message, rule) in [
        (event("merchant.changed.v1"), "only auth publishes this event"),
        (to_work_queue, "only delivering services write to work queues"),
    ] {
        let message = [message];
        let attempt = async || access_refused(publisher.publish(&message).await.err());
        eventually(rule, TIMEOUT, attempt).await;
    }
    let own = "order-intake.merchant.changed.v1";
    eventually("its own queue", TIMEOUT, async || {
        Subscription::open(&connection, own, 1).await.ok()
    })
    .await;
    let other = "rma-engine.order.stored.v1";
    let attempt = async || access_refused(Subscription::open(&connection, other, 1).await.err());
    eventually("access to the queue of another service is refused", TIMEOUT, attempt).await;

    let engine = installation.connect("rma-engine", &tasks);
    let mut queue = Subscription::open(&engine, "rma-engine.order.stored.v1", 1).await.unwrap();
    assert_eq!(queue.next(10).await.unwrap().len(), 1, "the one event that was published");

    for (queue, policy) in
        [("notify.rma", "max-queue-bytes"), ("notify.rma.dead", "dead-letter-delivery-limit")]
    {
        let path = format!("queues/{}/{queue}", installation.name);
        // The management API shows policies after a delay.
        let applied = async || {
            let queue = installation.request("GET", &path, &Value::Null).await;
            (queue["policy"] == policy).then_some(())
        };
        eventually(policy, TIMEOUT, applied).await;
    }

    tasks.drain(TIMEOUT).await;
    installation.remove().await;
}
