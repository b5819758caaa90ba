//! Everyone who plays a part in the tour, and the merchant's mailbox in front of them.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use domain::access::MerchantId;
use platform::http_client;
use reqwest::Client;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::mailbox::Mailbox;
use crate::operator::Operator;
use crate::output::print;
use crate::places;
use crate::settings::{Setting, Settings};
use crate::tokens::{Credentials, MERCHANT, OPERATOR, address, known_url};

/// How often something that is on its way is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// The one that is looked for is the last, so all of them have to be shown.
const MOST_LETTERS: u32 = 10_000;

/// The stack and its players.
pub(super) struct Stage {
    /// The merchant's own programs.
    pub(super) shop: Players,
    /// Whoever runs the service: here also carrier, warehouse and portal, which an operator may
    /// stand in for.
    pub(super) staff: Players,
    pub(super) operator: Operator,
    pub(super) merchant: MerchantId,
    pub(super) mailbox: Mailbox,
    broker: Option<Broker>,
    /// What the names of queues begin with.
    namespace: String,
    http: Client,
    patience: Duration,
}

/// One party at every service.
pub(super) struct Players {
    pub(super) orders: Operator,
    pub(super) returns: Operator,
    pub(super) exchange: Operator,
    pub(super) warehouse: Operator,
}

/// The operators' window into the broker.
struct Broker {
    console: Url,
    /// The virtual host, as it stands in an address.
    host: String,
    user: String,
    password: String,
}

const fn setting(name: &'static str, what: &'static str) -> Setting {
    Setting { name, flag: None, what }
}

impl Stage {
    pub(super) async fn set(settings: &Settings, patience: Duration) -> anyhow::Result<Self> {
        let merchant: MerchantId =
            settings.need(setting("MERCHANT_ID", "the merchant"))?.parse()?;
        let auth = known_url(settings)?;
        let credentials = Credentials::known(settings, OPERATOR)?;
        let operator = Operator::log_in(auth.clone(), credentials, patience).await?;
        let credentials = Credentials::known(settings, MERCHANT)?;
        let shop = Operator::log_in(auth, credentials, patience).await?;
        let sandbox = address(None, settings, setting("SANDBOX_URL", "the sandbox merchant"))?;
        let http = http_client(patience)?;
        Ok(Self {
            shop: Players::at(&shop, settings)?,
            staff: Players::at(&operator.clone().naming(Some(merchant.clone())), settings)?,
            operator,
            merchant,
            mailbox: Mailbox::open(sandbox, http.clone(), patience).await?,
            broker: Broker::find(settings)?,
            namespace: settings.find("BROKER_NAMESPACE").unwrap_or_default().to_owned(),
            http,
            patience,
        })
    }

    /// Asks again until there is an answer that will do, which must come in time.
    pub(super) async fn until<F>(&self, what: &str, ask: F) -> anyhow::Result<Value>
    where
        F: AsyncFn() -> anyhow::Result<Option<Value>>,
    {
        until(what, self.patience, ask).await
    }

    /// A queue's name as it stands in the broker.
    pub(super) fn queue(&self, name: &str) -> String {
        match self.namespace.as_str() {
            "" => name.to_owned(),
            namespace => format!("{namespace}.{name}"),
        }
    }

    /// The letters in a dead-letter queue, as the console shows them; they stay where they are.
    pub(super) async fn letters(&self, queue: &str) -> anyhow::Result<Option<Vec<Value>>> {
        let Some(broker) = &self.broker else { return Ok(None) };
        let url = broker.queue(queue);
        // Headers say which letter it is; of the bodies one byte is enough.
        let ask = json!({
            "count": MOST_LETTERS, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 1,
        });
        let request = self.http.post(url).basic_auth(&broker.user, Some(&broker.password));
        let answer = request.json(&ask).send().await?.error_for_status()?;
        Ok(Some(answer.json().await?))
    }

    /// One line of the story.
    pub(super) fn say(&self, what: &str, merchant_received: &str) -> anyhow::Result<()> {
        Ok(print(&format!("{what:<58} {merchant_received}\n"))?)
    }
}

async fn until<F>(what: &str, patience: Duration, ask: F) -> anyhow::Result<Value>
where
    F: AsyncFn() -> anyhow::Result<Option<Value>>,
{
    let late = || format!("{what}: not within {patience:?}");
    let end = Instant::now() + patience;
    let mut last = None;
    while Instant::now() < end {
        match timeout_at(end, ask()).await {
            Ok(Ok(Some(answer))) => return Ok(answer),
            Ok(Ok(None)) => last = None,
            Ok(Err(error)) => last = Some(error),
            Err(_elapsed) => break,
        }
        sleep(LOOK).await;
    }
    Err(last.map_or_else(|| anyhow!(late()), |error: anyhow::Error| error.context(late())))
}

impl Players {
    fn at(party: &Operator, settings: &Settings) -> anyhow::Result<Self> {
        let at = |place: Setting| {
            anyhow::Ok(party.clone().at(address(None, settings, place.without_flag())?))
        };
        Ok(Self {
            orders: at(places::ORDERS)?,
            returns: at(places::RETURNS)?,
            exchange: at(places::EXCHANGE)?,
            warehouse: at(places::WAREHOUSE)?,
        })
    }
}

impl Broker {
    fn find(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let names = ["RABBITMQ_CONSOLE_URL", "RABBITMQ_USER", "RABBITMQ_PASSWORD"];
        let [Some(console), Some(user), Some(password)] = names.map(|name| settings.find(name))
        else {
            return Ok(None);
        };
        let console = console.parse().context("RABBITMQ_CONSOLE_URL is not a URL")?;
        let amqp = settings.find("AMQP_URL").map(Url::parse).transpose();
        let host = virtual_host(amqp.context("AMQP_URL is not a URL")?.as_ref());
        Ok(Some(Self { console, host, user: user.to_owned(), password: password.to_owned() }))
    }

    /// Where the console hands out what is in a queue.
    fn queue(&self, name: &str) -> Url {
        let mut url = self.console.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/api/queues/{}/{name}/get", self.host));
        url
    }
}

/// The virtual host of a broker's address, the usual one unless it names another.
fn virtual_host(amqp: Option<&Url>) -> String {
    let named = amqp.and_then(|url| url.path().strip_prefix('/')).unwrap_or_default();
    if named.is_empty() { "%2F".to_owned() } else { named.replace('/', "%2F") }
}

/// A body out of a JSON object.
pub(super) fn body(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::bail;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_comes_late_is_none() {
        let patience = Duration::from_millis(10);
        let at_once = until("it is there", patience, async || Ok(Some(Value::Null))).await;
        assert_eq!(at_once.unwrap(), Value::Null);
        let late = until("it is there", patience, async || std::future::pending().await).await;
        assert_eq!(late.unwrap_err().to_string(), "it is there: not within 10ms");
    }

    #[tokio::test]
    async fn a_question_that_hangs_does_not_hide_the_failure_before_it() {
        let asked = AtomicUsize::new(0);
        let failed = until("it is there", 20 * LOOK, async || {
            if asked.fetch_add(1, Ordering::Relaxed) > 0 {
                std::future::pending().await
            }
            bail!("away")
        });
        assert_eq!(format!("{:#}", failed.await.unwrap_err()), "it is there: not within 1s: away");
        assert_eq!(asked.into_inner(), 2);
    }

    #[test]
    fn queues_are_looked_for_in_the_services_virtual_host() {
        let queue = |amqp: Option<&str>| {
            let amqp = amqp.map(|url| url.parse().unwrap());
            let broker = Broker {
                console: "http://h:15672/rabbit/".parse().unwrap(),
                host: virtual_host(amqp.as_ref()),
                user: String::new(),
                password: String::new(),
            };
            broker.queue("q.dead").to_string()
        };
        let usual = "http://h:15672/rabbit/api/queues/%2F/q.dead/get";
        for amqp in [None, Some("amqp://h"), Some("amqp://h/"), Some("amqp://h//")] {
            assert_eq!(queue(amqp), usual, "{amqp:?}");
        }
        assert_eq!(queue(Some("amqp://h/%2F")), usual);
        assert_eq!(
            queue(Some("amqp://h/a%2Fb")),
            "http://h:15672/rabbit/api/queues/a%2Fb/q.dead/get"
        );
    }
}
