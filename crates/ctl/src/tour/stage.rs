//! Everyone who plays a part in the tour, and the merchant's mailbox in front of them.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use domain::access::MerchantId;
use platform::http_client;
use reqwest::Client;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::operator::Operator;
use crate::output::print;
use crate::places;
use crate::settings::{Setting, Settings};
use crate::tokens::{Credentials, MERCHANT, OPERATOR, address, below};

/// How often something that is on its way is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The stack and its players.
pub(super) struct Stage {
    /// The merchant's own programs.
    pub(super) shop: Players,
    /// Whoever runs the service: here also carrier, warehouse and portal, which an operator may
    /// stand in for.
    pub(super) staff: Players,
    pub(super) operator: Operator,
    pub(super) merchant: MerchantId,
    sandbox: Url,
    broker: Option<Broker>,
    /// What the names of queues begin with.
    namespace: String,
    http: Client,
    patience: Duration,
    /// The longest that anybody waited for a message.
    pub(super) longest_wait: Duration,
    /// What was shown already.
    seen: HashSet<u64>,
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
    user: String,
    password: String,
}

const fn setting(name: &'static str, what: &'static str) -> Setting {
    Setting { name, flag: "the environment", what }
}

impl Stage {
    pub(super) async fn set(settings: &Settings, patience: Duration) -> anyhow::Result<Self> {
        let merchant: MerchantId =
            settings.need(setting("MERCHANT_ID", "the merchant"))?.parse()?;
        let auth = address(None, settings, setting("AUTH_URL", "the token service"))?;
        let credentials = Credentials::find(settings, OPERATOR, None, None)?;
        let operator = Operator::log_in(auth.clone(), credentials).await?;
        let credentials = Credentials::find(settings, MERCHANT, None, None)?;
        let shop = Operator::log_in(auth, credentials).await?;
        Ok(Self {
            shop: Players::at(&shop, settings)?,
            staff: Players::at(&operator.clone().naming(Some(merchant.clone())), settings)?,
            operator,
            merchant,
            sandbox: address(None, settings, setting("SANDBOX_URL", "the sandbox merchant"))?,
            broker: Broker::find(settings)?,
            namespace: settings.find("BROKER_NAMESPACE").unwrap_or_default().to_owned(),
            http: http_client(Duration::from_secs(10))?,
            patience,
            longest_wait: Duration::ZERO,
            seen: HashSet::new(),
        })
    }

    pub(super) fn sandbox(&self) -> &Url {
        &self.sandbox
    }

    /// Tells the sandbox merchant how to be.
    pub(super) async fn tell(&self, what: &str, body: &Value) -> anyhow::Result<()> {
        let answer = self.http.put(below(&self.sandbox, [what])).json(body).send().await?;
        answer.error_for_status().context("the sandbox merchant refused")?;
        Ok(())
    }

    /// Lets the sandbox merchant be well again.
    pub(super) async fn recover(&self) -> anyhow::Result<()> {
        self.http.delete(below(&self.sandbox, ["behaviour"])).send().await?.error_for_status()?;
        Ok(())
    }

    /// Waits until the merchant has received a message of which `fits` is true, and returns it.
    pub(super) async fn received(
        &mut self,
        event: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let begun = Instant::now();
        let url = below(&self.sandbox, ["journal"]);
        loop {
            let answer = self.http.get(url.clone()).query(&[("event", event)]).send().await?;
            let page: Value = answer.error_for_status()?.json().await?;
            let entries = page.get("entries").and_then(Value::as_array);
            for entry in entries.into_iter().flatten() {
                let number = entry.get("number").and_then(Value::as_u64).unwrap_or_default();
                let body = entry.get("body").unwrap_or(&Value::Null);
                let taken = entry.get("answer").and_then(Value::as_str) == Some("200");
                if taken && fits(body) && self.seen.insert(number) {
                    check_signature(event, entry)?;
                    self.longest_wait = self.longest_wait.max(begun.elapsed());
                    return Ok(body.clone());
                }
            }
            if begun.elapsed() > self.patience {
                bail!("the merchant received no {event} within {:?}", self.patience);
            }
            sleep(LOOK).await;
        }
    }

    /// Asks again until there is an answer that will do.
    pub(super) async fn until<F>(&self, what: &str, ask: F) -> anyhow::Result<Value>
    where
        F: AsyncFn() -> anyhow::Result<Option<Value>>,
    {
        let begun = Instant::now();
        loop {
            let last = ask().await;
            if let Ok(Some(answer)) = last {
                return Ok(answer);
            }
            if begun.elapsed() > self.patience {
                return match last {
                    Err(error) => {
                        Err(error.context(format!("{what}: not within {:?}", self.patience)))
                    }
                    Ok(_) => bail!("{what}: not within {:?}", self.patience),
                };
            }
            sleep(LOOK).await;
        }
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
        let url = below(&broker.console, ["api", "queues", "/", queue, "get"]);
        let ask = json!({"count": 200, "ackmode": "ack_requeue_true", "encoding": "auto"});
        let request = self.http.post(url).basic_auth(&broker.user, Some(&broker.password));
        let answer = request.json(&ask).send().await?.error_for_status()?;
        Ok(Some(answer.json().await?))
    }

    /// One line of the story.
    pub(super) fn say(&self, what: &str, merchant_received: &str) -> anyhow::Result<()> {
        Ok(print(&format!("{what:<58} {merchant_received}\n"))?)
    }
}

impl Players {
    fn at(party: &Operator, settings: &Settings) -> anyhow::Result<Self> {
        let at = |place| anyhow::Ok(party.clone().at(address(None, settings, place)?));
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
        Ok(Some(Self { console, user: user.to_owned(), password: password.to_owned() }))
    }
}

fn check_signature(event: &str, entry: &Value) -> anyhow::Result<()> {
    match entry.get("signature").and_then(Value::as_str) {
        Some("valid") => Ok(()),
        verdict => bail!("{event} arrived with a signature that is {}", verdict.unwrap_or("?")),
    }
}

/// A body out of a JSON object.
pub(super) fn body(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
