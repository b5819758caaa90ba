//! The users of `deploy/rabbitmq` on a real broker: their rights are enough, and no more.

use std::time::Duration;

use messaging::{BrokerConnection, BrokerError, Message, Publisher, Subscription, Topology};
use platform::Tasks;
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::SOON;

/// A virtual host with everything the definitions say, and users of its own.
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
        installation.ask("POST", "definitions", &definitions).await;
        installation
    }

    fn user(&self, service: &str) -> String {
        format!("{}-{service}", self.name)
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        // In the URL, so that what is escaped there is read as it was meant.
        let mut url = url::Url::parse(&format!("{}/{path}", self.api)).unwrap();
        url.set_username(self.amqp.username()).unwrap();
        url.set_password(self.amqp.password()).unwrap();
        let request = client.request(method.parse().unwrap(), url).json(body);
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap_or_default()
    }

    /// A link as the service has it in production.
    fn link(&self, service: &str, tasks: &Tasks) -> BrokerConnection {
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
        self.ask("DELETE", &format!("vhosts/{}", self.name), &Value::Null).await;
        for service in ["auth", "order-intake", "rma-engine", "exchange", "warehouse-notifier"] {
            let path = format!("users/{}", self.user(service));
            self.ask("DELETE", &path, &Value::Null).await;
        }
        self.ask("DELETE", &format!("users/{}", self.user("operator")), &Value::Null).await;
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

/// Whether the broker said that the user may not, and not that something else went wrong.
fn refused(error: Option<BrokerError>) -> Option<()> {
    let error = error.expect("it was allowed");
    format!("{error:?}").contains("ACCESS_REFUSED").then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_can_do_its_work_with_the_rights_it_is_given_and_no_more() {
    let (installation, tasks) = (Installation::create().await, Tasks::default());
    let link = installation.link("order-intake", &tasks);
    eventually("connected without the right to declare", SOON, async || link.state().ok()).await;

    let publisher = Publisher::new(link.clone());
    assert_eq!(publisher.publish(&[event("order.stored.v1")]).await.unwrap(), [Ok(())]);
    let straight = Message { exchange: messaging::Exchange(String::new()), ..event("notify.rma") };
    for (message, whose) in [
        (event("merchant.changed.v1"), "auth says that"),
        (straight, "those that deliver write to work queues"),
    ] {
        let message = [message];
        let tried = async || refused(publisher.publish(&message).await.err());
        eventually(whose, SOON, tried).await;
    }
    let own = "order-intake.merchant.changed.v1";
    eventually("its own queue", SOON, async || Subscription::open(&link, own, 1).await.ok()).await;
    let other = "rma-engine.order.stored.v1";
    let tried = async || refused(Subscription::open(&link, other, 1).await.err());
    eventually("another's queue is refused", SOON, tried).await;

    let engine = installation.link("rma-engine", &tasks);
    let mut queue = Subscription::open(&engine, "rma-engine.order.stored.v1", 1).await.unwrap();
    assert_eq!(queue.next(10).await.unwrap().len(), 1, "the one event that was allowed");

    for (queue, policy) in
        [("notify.rma", "queues-stay-bounded"), ("notify.rma.dead", "dead-letters-outlive-looking")]
    {
        let path = format!("queues/{}/{queue}", installation.name);
        // The console learns of policies with its next round of figures.
        let applied = async || {
            let seen = installation.ask("GET", &path, &Value::Null).await;
            (seen["policy"] == policy).then_some(())
        };
        eventually(policy, SOON, applied).await;
    }

    tasks.drain(SOON).await;
    installation.remove().await;
}
