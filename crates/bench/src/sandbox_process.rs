//! The sandbox as the merchants of a benchmark: its behaviour, and the requests that arrived.

use std::{ops::Range, time::Duration};

use anyhow::Context as _;
use platform::Timestamp;
use reqwest::Client;
use serde_json::{Value, json};

use crate::process::{Program, free_port};

/// Requests of one page of the journal.
const PAGE_SIZE: usize = 1000;

pub(crate) struct Sandbox {
    program: Program,
    client: Client,
}

/// A request that arrived.
pub(crate) struct Arrival {
    pub(crate) at: Timestamp,
    /// Header `webhook-id`.
    pub(crate) message_id: String,
    pub(crate) body: Value,
}

impl Sandbox {
    /// Starts a sandbox that remembers this many requests.
    pub(crate) async fn start(requests: usize) -> anyhow::Result<Self> {
        let (port, capacity) = (free_port()?, requests.to_string());
        let text = port.to_string();
        let environment =
            [("SANDBOX__HTTP__PORT", text.as_str()), ("SANDBOX__JOURNAL__CAPACITY", &capacity)];
        let program = Program::start("sandbox", &[], &environment, port, "/healthz").await?;
        Ok(Self { program, client: platform::http_client(Duration::from_secs(60))? })
    }

    pub(crate) fn url(&self) -> &str {
        &self.program.url
    }

    /// The base URL of a merchant.
    pub(crate) fn merchant_url(&self, merchant: usize) -> String {
        format!("{}/m{merchant}", self.program.url)
    }

    /// Makes merchants accept requests without a response.
    pub(crate) async fn hang(&self, merchants: Range<usize>) -> anyhow::Result<()> {
        self.set(merchants, &json!({"do": "hang", "times": "always"})).await
    }

    /// Makes merchants respond with 200 after a delay.
    pub(crate) async fn delay(
        &self,
        merchants: Range<usize>,
        delay: Duration,
    ) -> anyhow::Result<()> {
        let millis = u64::try_from(delay.as_millis())?;
        let step = json!({"do": "respond", "status": 200, "times": "always", "delay_ms": millis});
        self.set(merchants, &step).await
    }

    async fn set(&self, merchants: Range<usize>, step: &Value) -> anyhow::Result<()> {
        let url = format!("{}/behaviour", self.program.url);
        for merchant in merchants {
            let rule = json!({"path": format!("/m{merchant}/*"), "steps": [step]});
            self.client.put(&url).json(&rule).send().await?.error_for_status()?;
        }
        Ok(())
    }

    /// Makes all merchants respond at once again.
    pub(crate) async fn reset(&self) -> anyhow::Result<()> {
        let url = format!("{}/behaviour", self.program.url);
        self.client.delete(url).send().await?.error_for_status()?;
        Ok(())
    }

    /// The number of requests that arrived so far.
    pub(crate) async fn total(&self) -> anyhow::Result<u64> {
        let page = self.page(0, 0).await?;
        page.get("total").and_then(Value::as_u64).context("the journal has no total")
    }

    /// The requests after the first `number`.
    pub(crate) async fn arrivals_after(&self, mut number: u64) -> anyhow::Result<Vec<Arrival>> {
        let mut arrivals = Vec::new();
        loop {
            let mut page = self.page(number, PAGE_SIZE).await?;
            let entries = page.get_mut("entries").and_then(Value::as_array_mut);
            let entries = entries.context("the journal has no entries")?;
            if entries.is_empty() {
                return Ok(arrivals);
            }
            for entry in entries {
                number = entry.get("number").and_then(Value::as_u64).context("no number")?;
                let text = |pointer| entry.pointer(pointer).and_then(Value::as_str);
                let at = text("/at").context("a request has no time")?.parse()?;
                let message_id = text("/headers/webhook-id").unwrap_or_default().to_owned();
                let body = entry.get_mut("body").map(Value::take).unwrap_or_default();
                arrivals.push(Arrival { at, message_id, body });
            }
        }
    }

    async fn page(&self, after: u64, limit: usize) -> anyhow::Result<Value> {
        let url = format!("{}/journal?after={after}&limit={limit}", self.program.url);
        Ok(self.client.get(url).send().await?.error_for_status()?.json().await?)
    }
}
