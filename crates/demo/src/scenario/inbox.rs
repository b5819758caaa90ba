//! The messages that the sandbox merchant received since the start of the scenario, and the mails to shoppers.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use ctl::service_urls::join;
use reqwest::{Client, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use url::Url;

use crate::poll::POLL_INTERVAL;

pub(super) struct Inbox {
    sandbox: Url,
    http: Client,
    timeout: Duration,
    /// Number of requests before the scenario. The sandbox returns limited pages, oldest first, so the
    /// requests of the scenario must be requested separately.
    requests_before: u64,
    /// Journal numbers of the messages that [`Inbox::receive`] returned.
    received: HashSet<u64>,
    /// Journal number and sequence of the newest message of each return.
    newest: HashMap<String, (u64, u64)>,
    pub(super) longest_wait: Duration,
}

impl Inbox {
    pub(super) async fn open(
        sandbox: Url,
        http: Client,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let mut inbox = Self {
            sandbox,
            http,
            timeout,
            requests_before: 0,
            received: HashSet::new(),
            newest: HashMap::new(),
            longest_wait: Duration::ZERO,
        };
        let journal = inbox.journal(&[("limit", "0")]).await?;
        inbox.requests_before = journal.get("total").and_then(Value::as_u64).unwrap_or_default();
        Ok(inbox)
    }

    pub(super) fn sandbox(&self) -> &Url {
        &self.sandbox
    }

    /// Changes the `secrets` or the `behaviour` of the sandbox.
    pub(super) async fn configure(&self, resource: &str, body: &Value) -> anyhow::Result<()> {
        let response = self.http.put(join(&self.sandbox, [resource])).json(body).send().await?;
        response.error_for_status().context("the sandbox rejects its configuration")?;
        Ok(())
    }

    /// Removes all behaviour rules of the sandbox.
    pub(super) async fn reset_behaviour(&self) -> anyhow::Result<()> {
        self.http.delete(join(&self.sandbox, ["behaviour"])).send().await?.error_for_status()?;
        Ok(())
    }

    /// Waits for a message that the merchant accepted and whose body matches, and returns the body.
    pub(super) async fn receive(
        &mut self,
        event: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let started_at = Instant::now();
        let after = self.requests_before.to_string();
        loop {
            let page = self.journal(&[("event", event), ("after", &after)]).await?;
            let entries = page.get("entries").and_then(Value::as_array);
            for entry in entries.into_iter().flatten() {
                let number = entry.get("number").and_then(Value::as_u64).unwrap_or_default();
                let body = entry.get("body").unwrap_or(&Value::Null);
                let is_accepted = entry.get("response").and_then(Value::as_str) == Some("200");
                if is_accepted && matches(body) && self.received.insert(number) {
                    check_signature(event, entry)?;
                    self.check_order(event, entry)?;
                    self.longest_wait = self.longest_wait.max(started_at.elapsed());
                    return Ok(body.clone());
                }
            }
            if started_at.elapsed() > self.timeout {
                bail!("the merchant received no {event} within {:?}", self.timeout);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Checks that the messages of a return arrive in order.
    fn check_order(&mut self, event: &str, entry: &Value) -> anyhow::Result<()> {
        let rma = entry.pointer("/body/rma_identifier").and_then(Value::as_str);
        // Messages of other kinds may name a return, but have no order relative to it.
        let Some(rma) = rma.filter(|_| event.starts_with("rma.")) else { return Ok(()) };
        let number = entry.get("number").and_then(Value::as_u64);
        let sequence = entry.pointer("/headers/x-service-sequence").and_then(Value::as_str);
        let sequence = sequence.and_then(|text| text.parse().ok());
        let (Some(number), Some(sequence)) = (number, sequence) else {
            bail!("{event} of {rma} arrived without a sequence");
        };
        let previous = self.newest.insert(rma.to_owned(), (number, sequence));
        if previous.is_some_and(|previous| number <= previous.0 || sequence <= previous.1) {
            bail!("{event} of {rma} arrived out of order: {sequence} after {previous:?}");
        }
        Ok(())
    }

    /// The products of the sandbox.
    pub(super) async fn catalogue(&self) -> anyhow::Result<Value> {
        let request = self.http.get(join(&self.sandbox, ["catalogue"]));
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    /// The mails to an address; `None` if the sandbox receives no mails.
    pub(super) async fn mails(&self, to: &str) -> anyhow::Result<Option<Vec<Value>>> {
        let request = self.http.get(join(&self.sandbox, ["mails.json"])).query(&[("to", to)]);
        let response = request.send().await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        Ok(Some(response.error_for_status()?.json().await?))
    }

    async fn journal(&self, query: &[(&str, &str)]) -> anyhow::Result<Value> {
        let request = self.http.get(join(&self.sandbox, ["journal"])).query(query);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }
}

fn check_signature(event: &str, entry: &Value) -> anyhow::Result<()> {
    match entry.get("signature").and_then(Value::as_str) {
        Some("valid") => Ok(()),
        status => bail!("the signature of {event} is {}", status.unwrap_or("unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_before_the_scenario_are_ignored() {
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
        let mut inbox = Inbox::open(url, http.clone(), Duration::ZERO).await.unwrap();
        send(2).await;
        let error = inbox.receive(event, |body| body["number"] == 1).await.unwrap_err();
        assert_eq!(error.to_string(), "the merchant received no rma.created within 0ns");
        let error = inbox.receive(event, |_| true).await.unwrap_err();
        assert_eq!(error.to_string(), "the signature of rma.created is unchecked");
    }

    #[tokio::test]
    async fn a_sandbox_without_an_inbox_has_no_mails() {
        let mut settings = sandbox::settings::Settings::for_tests().unwrap();
        for (enabled, expected) in [(false, None), (true, Some(Vec::new()))] {
            settings.mail.enabled = enabled;
            let sandbox = sandbox::start(&settings).unwrap();
            let http = platform::http_client(Duration::from_secs(10)).unwrap();
            let url = sandbox.url("").parse().unwrap();
            let inbox = Inbox::open(url, http, Duration::ZERO).await.unwrap();
            assert_eq!(inbox.mails("ada@shopper.example").await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn messages_of_a_return_must_arrive_in_order() {
        let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
        let http = platform::http_client(Duration::from_secs(10)).unwrap();
        let url = sandbox.url("").parse().unwrap();
        let mut inbox = Inbox::open(url, http, Duration::ZERO).await.unwrap();
        let mut check = |number: u64, rma: &str, sequence: &str| {
            let entry = serde_json::json!({ "number": number, "body": { "rma_identifier": rma },
                "headers": { "x-service-sequence": sequence } });
            inbox.check_order("rma.created", &entry).map_err(|error| error.to_string())
        };
        assert_eq!(check(1, "RMA-1", "1"), Ok(()));
        assert_eq!(check(2, "RMA-2", "1"), Ok(()));
        assert_eq!(check(3, "RMA-1", "2"), Ok(()));
        assert!(check(4, "RMA-1", "2").unwrap_err().contains("out of order"));
        assert!(check(1, "RMA-2", "2").unwrap_err().contains("out of order"));
        assert!(check(5, "RMA-3", "").unwrap_err().contains("without a sequence"));
        let exchange = serde_json::json!({ "body": { "rma_identifier": "RMA-1" } });
        assert!(inbox.check_order("exchange_order.created", &exchange).is_ok());
    }
}
