//! The management API of RabbitMQ.

use std::time::Duration;

use anyhow::Context as _;
use ctl::settings::Settings;
use serde_json::Value;
use url::Url;

use crate::poll::poll;
use crate::settings::setting;

/// The API has no data for some seconds after the broker starts.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The pid of the broker.
pub(crate) async fn pid(settings: &Settings) -> anyhow::Result<u32> {
    Ok(fetch(settings, "nodes", "/0/os_pid").await?.parse()?)
}

pub(crate) async fn version(settings: &Settings) -> anyhow::Result<String> {
    fetch(settings, "overview", "/rabbitmq_version").await
}

/// A text of the response.
async fn fetch(settings: &Settings, path: &str, pointer: &str) -> anyhow::Result<String> {
    let amqp: Url = setting(settings, "AMQP_URL")?.parse()?;
    let api = setting(settings, "RABBITMQ_API_URL")?;
    let mut url: Url = format!("{api}/{path}").parse()?;
    // Both URLs have the same percent-encoding.
    let set = url.set_username(amqp.username()).and_then(|()| url.set_password(amqp.password()));
    anyhow::ensure!(set.is_ok(), "{api} cannot have a user and a password");
    let client = platform::http_client(Duration::from_secs(10))?;
    poll("RabbitMQ's API has data", TIMEOUT, async || {
        let response = client.get(url.clone()).send().await?.error_for_status()?;
        let response: Value = response.json().await?;
        Ok(response.pointer(pointer).and_then(Value::as_str).map(str::to_owned))
    })
    .await
    .with_context(|| format!("{api}/{path}"))
}
