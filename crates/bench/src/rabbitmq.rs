//! The management API of RabbitMQ.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Url;
use serde_json::Value;

use crate::process::test_setting;

/// The pid of the broker.
pub(crate) async fn pid() -> anyhow::Result<u32> {
    let nodes = url("nodes")?;
    Ok(fetch(&nodes, "/0/os_pid").await?.parse()?)
}

pub(crate) async fn version() -> anyhow::Result<String> {
    fetch(&url("overview")?, "/rabbitmq_version").await
}

fn url(path: &str) -> anyhow::Result<Url> {
    let amqp: Url = test_setting("BACKHAUL_TEST_AMQP_URL")?.parse()?;
    let api = test_setting("BACKHAUL_TEST_RABBITMQ_API_URL")?;
    let mut url: Url = format!("{api}/{path}").parse()?;
    // Both URLs have the same percent-encoding.
    let set = url.set_username(amqp.username()).and_then(|()| url.set_password(amqp.password()));
    anyhow::ensure!(set.is_ok(), "{api} cannot have a user and a password");
    Ok(url)
}

/// A text of the response. The API has no data for some seconds after the broker starts.
async fn fetch(url: &Url, pointer: &str) -> anyhow::Result<String> {
    let client = platform::http_client(Duration::from_secs(10))?;
    testkit::eventually("RabbitMQ's API has data", Duration::from_secs(30), async || {
        fetch_once(&client, url, pointer).await.transpose()
    })
    .await
    .with_context(|| url.path().to_owned())
}

/// `None` if the API has no data yet.
async fn fetch_once(
    client: &reqwest::Client,
    url: &Url,
    pointer: &str,
) -> anyhow::Result<Option<String>> {
    let response = client.get(url.clone()).send().await?.error_for_status()?;
    let response: Value = response.json().await?;
    Ok(response.pointer(pointer).and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_rejected_request_is_an_error_and_missing_data_is_not() {
        let api = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nodes: Url = format!("http://{}/nodes", api.local_addr().unwrap()).parse().unwrap();
        let client = platform::http_client(Duration::from_secs(10)).unwrap();
        let respond = async |response: &[u8]| {
            let (mut stream, _) = api.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            stream.write_all(response).await.unwrap();
        };
        let fetch_pid = || fetch_once(&client, &nodes, "/0/os_pid");
        let rejected = b"HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
        let (pid, ()) = tokio::join!(fetch_pid(), respond(rejected));
        assert!(pid.unwrap_err().to_string().contains("401"));
        let no_data = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\n[{}]";
        let (pid, ()) = tokio::join!(fetch_pid(), respond(no_data));
        assert_eq!(pid.unwrap(), None);
    }
}
