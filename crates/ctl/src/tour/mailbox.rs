//! What the sandbox merchant received since the tour began.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

use super::stage::LOOK;
use crate::tokens::below;

/// The merchant's mailbox, and the means to tell the merchant how to be.
pub(super) struct Mailbox {
    sandbox: Url,
    http: Client,
    patience: Duration,
    /// How many requests had arrived before. The sandbox shows the oldest first and not all at once,
    /// so without it a merchant with a past would never be seen to receive anything.
    before: u64,
    /// What was shown already.
    seen: HashSet<u64>,
    /// Of each return, the number in the journal and the sequence of its newest message.
    newest: HashMap<String, (u64, u64)>,
    /// The longest that anybody waited for a message.
    pub(super) longest_wait: Duration,
}

impl Mailbox {
    pub(super) async fn open(
        sandbox: Url,
        http: Client,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let mut mailbox = Self {
            sandbox,
            http,
            patience,
            before: 0,
            seen: HashSet::new(),
            newest: HashMap::new(),
            longest_wait: Duration::ZERO,
        };
        let journal = mailbox.journal(&[("limit", "0")]).await?;
        mailbox.before = journal.get("total").and_then(Value::as_u64).unwrap_or_default();
        Ok(mailbox)
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
        let after = self.before.to_string();
        loop {
            let page = self.journal(&[("event", event), ("after", &after)]).await?;
            let entries = page.get("entries").and_then(Value::as_array);
            for entry in entries.into_iter().flatten() {
                let number = entry.get("number").and_then(Value::as_u64).unwrap_or_default();
                let body = entry.get("body").unwrap_or(&Value::Null);
                let taken = entry.get("answer").and_then(Value::as_str) == Some("200");
                if taken && fits(body) && self.seen.insert(number) {
                    check_signature(event, entry)?;
                    self.check_order(event, entry)?;
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

    /// The story is told in the order in which messages of a return must come.
    fn check_order(&mut self, event: &str, entry: &Value) -> anyhow::Result<()> {
        let rma = entry.pointer("/body/rma_identifier").and_then(Value::as_str);
        // Others name a return too, and come on their own.
        let Some(rma) = rma.filter(|_| event.starts_with("rma.")) else { return Ok(()) };
        let number = entry.get("number").and_then(Value::as_u64);
        let sequence = entry.pointer("/headers/x-service-sequence").and_then(Value::as_str);
        let sequence = sequence.and_then(|text| text.parse().ok());
        let (Some(number), Some(sequence)) = (number, sequence) else {
            bail!("{event} of {rma} arrived without a sequence");
        };
        let before = self.newest.insert(rma.to_owned(), (number, sequence));
        if before.is_some_and(|before| number <= before.0 || sequence <= before.1) {
            bail!("{event} of {rma} arrived out of order: {sequence} after {before:?}");
        }
        Ok(())
    }

    async fn journal(&self, query: &[(&str, &str)]) -> anyhow::Result<Value> {
        let request = self.http.get(below(&self.sandbox, ["journal"])).query(query);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }
}

fn check_signature(event: &str, entry: &Value) -> anyhow::Result<()> {
    match entry.get("signature").and_then(Value::as_str) {
        Some("valid") => Ok(()),
        verdict => bail!("{event} arrived with a signature that is {}", verdict.unwrap_or("?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_came_before_the_tour_is_not_looked_at() {
        let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
        let http = platform::http_client(Duration::from_secs(10)).unwrap();
        let event = "rma.created";
        let send = async |number: u64| {
            let request = http.post(sandbox.url("/rmas")).header("x-service-event", event);
            let body = serde_json::json!({ "number": number });
            request.json(&body).send().await.unwrap().error_for_status().unwrap();
        };
        send(1).await;
        let url = sandbox.url("").parse().unwrap();
        let mut mailbox = Mailbox::open(url, http.clone(), Duration::ZERO).await.unwrap();
        send(2).await;
        let nothing = mailbox.received(event, |it| it["number"] == 1).await.unwrap_err();
        assert_eq!(nothing.to_string(), "the merchant received no rma.created within 0ns");
        let unsigned = mailbox.received(event, |_| true).await.unwrap_err();
        assert!(unsigned.to_string().contains("a signature that is"), "{unsigned}");
    }

    #[tokio::test]
    async fn messages_of_a_return_come_in_order() {
        let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
        let http = platform::http_client(Duration::from_secs(10)).unwrap();
        let url = sandbox.url("").parse().unwrap();
        let mut mailbox = Mailbox::open(url, http, Duration::ZERO).await.unwrap();
        let mut check = |number: u64, rma: &str, sequence: &str| {
            let entry = serde_json::json!({ "number": number, "body": { "rma_identifier": rma },
                "headers": { "x-service-sequence": sequence } });
            mailbox.check_order("rma.created", &entry).map_err(|error| error.to_string())
        };
        assert_eq!(check(1, "RMA-1", "1"), Ok(()));
        assert_eq!(check(2, "RMA-2", "1"), Ok(()));
        assert_eq!(check(3, "RMA-1", "2"), Ok(()));
        assert!(check(4, "RMA-1", "2").unwrap_err().contains("out of order"));
        assert!(check(1, "RMA-2", "2").unwrap_err().contains("out of order"));
        assert!(check(5, "RMA-3", "").unwrap_err().contains("without a sequence"));
        let exchange = serde_json::json!({ "body": { "rma_identifier": "RMA-1" } });
        assert!(mailbox.check_order("exchange_order.created", &exchange).is_ok());
    }
}
