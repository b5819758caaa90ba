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

/// The answer of the service that has the thing, also when another is away; when none has, what kept
/// one from saying so, or the last one's refusal.
pub(crate) async fn first<F>(services: &[Operator], ask: F) -> anyhow::Result<Value>
where
    F: AsyncFn(&Operator) -> anyhow::Result<Value>,
{
    let (mut failed, mut refused) = (None, None);
    for service in services {
        match ask(service).await {
            Ok(answer) => return Ok(answer),
            Err(error) if is_missing(&error) => refused = Some(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.or(refused).unwrap_or_else(|| anyhow::anyhow!("no service was asked")))
}

/// One list out of the lists that they answer with under `key`, and whether all of them did. None at
/// all is an error.
pub(crate) async fn together<F>(
    services: &[Operator],
    key: &str,
    ask: F,
) -> anyhow::Result<(Value, anyhow::Result<()>)>
where
    F: AsyncFn(&Operator) -> anyhow::Result<Value>,
{
    let (mut parts, ended) = each(services, ask).await;
    if parts.is_empty() {
        ended?;
        return Ok((json!({ key: [] }), Ok(())));
    }
    let lists = parts.iter_mut().filter_map(|part| part.get_mut(key)?.as_array_mut());
    let all: Vec<_> = lists.flat_map(std::mem::take).collect();
    Ok((json!({ key: all }), ended))
}

/// What each of them answers, and the first error if there is one.
pub(crate) async fn each<F>(services: &[Operator], ask: F) -> (Vec<Value>, anyhow::Result<()>)
where
    F: AsyncFn(&Operator) -> anyhow::Result<Value>,
{
    let (mut answers, mut ended) = (Vec::new(), Ok(()));
    for service in services {
        match ask(service).await {
            Ok(answer) => answers.push(answer),
            Err(error) => ended = ended.and(Err(error)),
        }
    }
    (answers, ended)
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.status == StatusCode::NOT_FOUND)
}
