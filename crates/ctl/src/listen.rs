//! `backhaul listen`: sends copies of a merchant's messages to a local server.
//!
//! The command polls the delivering services, so the local server needs no address on the internet. The
//! merchant's endpoint still gets every message. Each service is polled by a task of its own, because a
//! service without messages responds only at the end of its wait.

use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use platform::http_client;
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::DeliveryServiceArgs;
use crate::output::{Format, causes, message, print};
use crate::usage_error;

/// Part of the error about a listener that was away for too long.
const TOO_OLD: &str = "after is older than";
/// The header with the signature of a copy.
const SIGNATURE_HEADER: &str = "webhook-signature";
/// A service responds after this time even without messages. It is shorter than the timeout of a request.
const WAIT_SECONDS: &str = "20";
/// Timeout of the local server.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed request to a service.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Copies that wait for the local server. The services are not polled while there are more.
const MAX_QUEUED_COPIES: usize = 10;

/// Send copies of a merchant's new messages to a local server
///
/// The copies are signed with the signing secret of their endpoint if the client has the scope manage or
/// replay. The endpoint still gets every message, and the status of the local server has no effect on its
/// delivery. A copy is sent about two seconds after its message was created. The client needs the scope read,
/// orders or returns. Ends with Ctrl-C, or after a number of messages.
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul listen --forward http://localhost:3000 --as merchant
  backhaul listen --forward http://localhost:3000/webhooks \\
      --merchant acme --count 1")]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    services: DeliveryServiceArgs,
    /// URL of the local server; without a path, a copy goes to the default path of its kind, such as /rmas
    #[arg(long, value_name = "URL", value_parser = parse_http_url)]
    forward: Url,
    /// Merchant, for a client that does not belong to one
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// End after this number of messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

/// New messages of one service.
#[derive(Deserialize)]
struct NewMessages {
    messages: Vec<MessageCopy>,
    next: String,
}

#[derive(Deserialize)]
struct MessageCopy {
    id: String,
    kind: String,
    event: String,
    headers: std::collections::BTreeMap<String, String>,
    body: String,
}

struct Listener {
    service: ApiClient,
    merchant: Option<MerchantId>,
    next: String,
}

fn parse_http_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| "must be a URL such as http://localhost:3000/webhooks".to_owned())
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, services, forward, merchant, count } = arguments;
    let auth = operator.connect().await?;
    if merchant.is_none() && auth.is_operator() {
        return Err(usage_error(
            "pass --merchant, or --as merchant to use the client of the merchant",
        ));
    }
    auth.require_merchant(merchant.as_ref()).await?;
    let forwarder =
        Forwarder { http: http_client(LOCAL_TIMEOUT)?, url: forward, format: operator.format() };
    let mut listeners = Vec::new();
    for service in services.clients(&auth)? {
        listeners.push(Listener::start(service, merchant.clone()).await?);
    }
    message(&format!("waiting for new messages; copies go to {}", forwarder.url));
    let (sender, mut copies) = mpsc::channel(MAX_QUEUED_COPIES);
    let mut polls = JoinSet::new();
    for listener in listeners {
        polls.spawn(listener.run(sender.clone()));
    }
    let mut forwarded = 0;
    while count.is_none_or(|count| forwarded < count)
        && let Some(copy) = copies.recv().await
    {
        if forwarded == 0 && !copy.headers.contains_key(SIGNATURE_HEADER) {
            message(
                "warning: the copies have no signature; they are signed only for a client with the scope \
                 manage or replay, and only if the merchant has an endpoint",
            );
        }
        forwarder.forward(&copy).await?;
        forwarded += 1;
    }
    Ok(())
}

impl Listener {
    /// Starts with the messages from now on.
    async fn start(service: ApiClient, merchant: Option<MerchantId>) -> anyhow::Result<Self> {
        let mut listener = Self { service, merchant, next: String::new() };
        listener.next = listener.request(&[]).await?.next;
        Ok(listener)
    }

    /// Passes on the messages of the service as they come.
    async fn run(mut self, copies: mpsc::Sender<MessageCopy>) {
        loop {
            for message in self.poll().await {
                if copies.send(message).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The next messages, after a wait. A failure is reported and ends the wait, so that a restart of the
    /// service does not end the command.
    async fn poll(&mut self) -> Vec<MessageCopy> {
        let query = [("after", self.next.as_str()), ("wait", WAIT_SECONDS)];
        match self.request(&query).await {
            Ok(page) => {
                self.next = page.next;
                page.messages
            }
            Err(error) => {
                message(&format!("warning: {}", causes(&error)));
                sleep(RETRY_DELAY).await;
                if error.to_string().contains(TOO_OLD) {
                    self.start_again().await;
                }
                Vec::new()
            }
        }
    }

    /// Continues with the messages from now on, for example after the machine slept.
    async fn start_again(&mut self) {
        if let Ok(page) = self.request(&[]).await {
            message("warning: messages since the last copy are skipped");
            self.next = page.next;
        }
    }

    async fn request(&self, query: &[(&str, &str)]) -> anyhow::Result<NewMessages> {
        let mut query = query.to_vec();
        query.extend(self.merchant.as_ref().map(|merchant| ("merchant", merchant.as_str())));
        let page = self.service.search(&["v1", "messages"], &query).await?;
        NewMessages::deserialize(page).context("the response has no messages")
    }
}

/// The local server.
struct Forwarder {
    http: Client,
    url: Url,
    format: Format,
}

impl Forwarder {
    /// Sends a copy and prints one line about it.
    async fn forward(&self, message: &MessageCopy) -> anyhow::Result<()> {
        let headers: HeaderMap = message
            .headers
            .iter()
            .filter_map(|(name, value)| {
                Some((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?))
            })
            .collect();
        let url = url_for(&self.url, &message.kind);
        let request = self.http.post(url).headers(headers);
        let sent = request.body(message.body.clone()).send().await;
        let result = match sent {
            Ok(response) => response.status().as_u16().to_string(),
            Err(error) => format!("no response: {}", platform::chain(&error.without_url())),
        };
        let line = match self.format {
            Format::Text => format!("{}  {}  {result}\n", message.id, message.event),
            Format::Json => {
                let line: Value =
                    json!({ "id": message.id, "event": message.event, "result": result });
                format!("{line}\n")
            }
        };
        Ok(print(&line)?)
    }
}

/// The URL for a message of a kind: the given URL, or the default path of the kind if it has no path.
fn url_for(given: &Url, kind: &str) -> Url {
    let mut url = given.clone();
    if url.path() == "/"
        && let Ok(kind) = kind.parse::<MessageKind>()
    {
        url.set_path(kind.default_path());
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, kind: &str, expected: &str) {
        assert_eq!(url_for(&given.parse().unwrap(), kind).as_str(), expected);
    }

    #[test]
    fn a_url_without_a_path_gets_the_default_path_of_the_kind() {
        check("http://localhost:3000", "rma", "http://localhost:3000/rmas");
        check("http://localhost:3000/", "exchange-order", "http://localhost:3000/exchange_orders");
        check("http://localhost:3000?a=b", "rma", "http://localhost:3000/rmas?a=b");
        check("http://localhost:3000/webhooks", "rma", "http://localhost:3000/webhooks");
        check("http://localhost:3000", "of-a-later-version", "http://localhost:3000/");
    }
}
