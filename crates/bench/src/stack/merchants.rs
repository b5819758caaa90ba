//! The merchants of the benchmarks: ten, and one whose endpoint does not respond.

use anyhow::Context as _;
use ctl::api_client::REQUEST_TIMEOUT;
use ctl::service_urls::AUTH;
use serde_json::{Value, json};

use super::{Stack, TIMEOUT};
use crate::poll::poll;

/// The merchant that hangs. The receiver knows it by the path of its endpoint.
pub(crate) const HANGING: &str = "bench-hangs";
const NUMBER: usize = 10;
const SCOPES: [&str; 4] = ["orders", "returns", "carrier", "warehouse"];
const INTERFACES: [&str; 2] = ["rma", "inventory-receipt"];
/// The services that copy merchants.
pub(crate) const REPLICAS: [&str; 4] =
    ["order-intake", "rma-engine", "exchange", "warehouse-notifier"];

pub(crate) struct Merchant {
    pub(crate) name: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) token: String,
}

impl Merchant {
    pub(crate) fn hangs(&self) -> bool {
        self.name == HANGING
    }
}

/// Creates the merchants, the one that hangs last, and waits until all services know them.
pub(crate) async fn create(stack: &Stack) -> anyhow::Result<Vec<Merchant>> {
    let names = (0..NUMBER).map(|number| format!("bench-{number}"));
    let mut merchants = Vec::new();
    for name in names.chain([HANGING.to_owned()]) {
        merchants.push(create_one(stack, &name).await.with_context(|| name.clone())?);
    }
    for service in REPLICAS {
        let postgres = stack.database(service).await?;
        let [_, last] = INTERFACES;
        let known = format!(
            "SELECT count(*) FROM replica_merchants \
             WHERE identifier LIKE 'bench-%' AND document -> 'endpoints' ? '{last}'"
        );
        poll("the services know the merchants", TIMEOUT, async || {
            let known: i64 = postgres.value(&known).await?;
            Ok((usize::try_from(known)? == merchants.len()).then_some(()))
        })
        .await?;
    }
    Ok(merchants)
}

/// Creates a merchant with its endpoints and a client.
async fn create_one(stack: &Stack, name: &str) -> anyhow::Result<Merchant> {
    let operator = &stack.operator;
    let base_url = format!("{}/{name}", stack.receiver.url);
    let merchant = json!({"identifier": name, "name": name, "base_url": base_url});
    operator.post(&["v1", "merchants"], &merchant).await?;
    for interface in INTERFACES {
        operator.put(&["v1", "merchants", name, "endpoints", interface], &json!({})).await?;
    }
    let client = json!({"merchant": name, "name": "bench", "scopes": SCOPES});
    let client = operator.post(&["v1", "clients"], &client).await?;
    let client_id = text(&client, "client_id")?;
    let client_secret = text(&client, "client_secret")?;
    let grant = json!({
        "grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret,
    });
    let url = format!("{}/oauth/token", stack.settings.require(AUTH)?);
    let sent = platform::http_client(REQUEST_TIMEOUT)?.post(url).json(&grant).send().await?;
    let token = text(&sent.error_for_status()?.json().await?, "access_token")?;
    Ok(Merchant { name: name.to_owned(), client_id, client_secret, token })
}

fn text(response: &Value, member: &'static str) -> anyhow::Result<String> {
    let text = response.get(member).and_then(Value::as_str);
    Ok(text.with_context(|| format!("a response has no {member}"))?.to_owned())
}
