//! Test double of a merchant, and HTTP clients that may connect to it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use rustls::RootCertStore;
use sandbox::Running;
use sandbox::journal::Page;
use sandbox::settings::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::GuardedClient;
use crate::guard::{Guard, SystemResolver};

/// TLS configuration without trusted authorities: enough for plain HTTP and for TLS that must fail.
pub(crate) fn tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// Client that may connect to this machine.
pub(crate) fn client() -> GuardedClient {
    guarded_client(&["127.0.0.1/32"])
}

pub(crate) fn guarded_client(allowed_networks: &[&str]) -> GuardedClient {
    let allowed_networks: Vec<_> =
        allowed_networks.iter().map(|network| network.parse().unwrap()).collect();
    let guard = Guard::new(false, &allowed_networks);
    GuardedClient::new(guard, Arc::new(SystemResolver), tls(), Duration::from_secs(60)).unwrap()
}

/// A sandbox merchant whose behaviour tests can set.
pub(crate) struct TestMerchant {
    pub(crate) running: Running,
    client: GuardedClient,
}

impl TestMerchant {
    pub(crate) fn new() -> Self {
        let running = sandbox::start(&Settings::for_tests().unwrap()).unwrap();
        Self { running, client: client() }
    }

    pub(crate) async fn request(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = self.running.url(path).parse().unwrap();
        let request = self.client.request(method, url).unwrap();
        let response = request.json(body).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.status());
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default()
    }

    pub(crate) async fn behave(&self, path: &str, steps: Value) {
        self.request(Method::PUT, "/behaviour", &json!({"path": path, "steps": steps})).await;
    }

    pub(crate) async fn journal(&self, path: &str) -> Page {
        let page = self.request(Method::GET, &format!("/journal?path={path}"), &json!({})).await;
        serde_json::from_value(page).unwrap()
    }
}

/// Reads a request, sends this response, closes the connection, and returns the request.
pub(crate) async fn respond_and_close(mut stream: TcpStream, response: &[u8]) -> String {
    let request = read_request(&mut stream).await;
    stream.write_all(response).await.unwrap();
    request
}

pub(crate) async fn read_request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let mut missing = usize::MAX;
    while missing > 0 {
        read.push(stream.read_u8().await.unwrap());
        missing = missing.saturating_sub(1);
        if missing > 1 << 20 && read.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            missing = length.map_or(0, |length| length.parse().unwrap());
        }
    }
    String::from_utf8(read).unwrap()
}
