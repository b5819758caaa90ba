//! The services that deliver, asked as if they were one: each keeps its own record of what it
//! sends, and an operator does not care which.

use anyhow::bail;
use clap::Args;
use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::Usage;
use crate::operator::Operator;
use crate::places::{EXCHANGE, RETURNS, WAREHOUSE};
use crate::refusal::Refusal;
use crate::settings::Settings;

/// Where each of them is, by setting.
const PLACES: [&str; 3] = [RETURNS.name, EXCHANGE.name, WAREHOUSE.name];

/// Which services are asked.
#[derive(Args)]
pub(crate) struct Deliverers {
    /// One service that delivers [default: all of $RMA_URL, $EXCHANGE_URL, $WAREHOUSE_URL]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    service_url: Option<Url>,
}

impl Deliverers {
    /// The operator at each of them.
    pub(crate) fn reach(&self, operator: &Operator) -> anyhow::Result<Vec<Operator>> {
        let places = match &self.service_url {
            Some(url) => vec![url.clone()],
            None => known(&Settings::load()?)?,
        };
        Ok(places.into_iter().map(|url| operator.clone().at(url)).collect())
    }
}

fn known(settings: &Settings) -> anyhow::Result<Vec<Url>> {
    let mut places = Vec::new();
    for name in PLACES {
        let Some(text) = settings.find(name) else { continue };
        match text.parse() {
            Ok(url) => places.push(url),
            Err(error) => bail!("{name} is not a URL: {error}"),
        }
    }
    if places.is_empty() {
        let names = PLACES.join(", ");
        return Err(Usage(format!(
            "no service that delivers is known: set one of {names}, or give --service-url"
        ))
        .into());
    }
    Ok(places)
}

/// The answer of the service that has the thing; when none has, the last one's refusal.
pub(crate) async fn first<F>(services: &[Operator], ask: F) -> anyhow::Result<Value>
where
    F: AsyncFn(&Operator) -> anyhow::Result<Value>,
{
    let mut refused = None;
    for service in services {
        match ask(service).await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_missing(&error) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or_else(|| anyhow::anyhow!("no service was asked")))
}

/// One list out of the lists that all of them answer with under `key`.
pub(crate) async fn together<F>(services: &[Operator], key: &str, ask: F) -> anyhow::Result<Value>
where
    F: AsyncFn(&Operator) -> anyhow::Result<Value>,
{
    let mut all = Vec::new();
    for service in services {
        if let Some(Value::Array(part)) = ask(service).await?.get_mut(key) {
            all.append(part);
        }
    }
    Ok(json!({ key: all }))
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
}
