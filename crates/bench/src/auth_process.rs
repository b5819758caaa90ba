//! The auth process, with an operator's client.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use auth::App;
use platform::Service as _;
use reqwest::Client;
use serde_json::{Value, json};
use testkit::{Database, Namespace, sealing_keys};

use crate::process::{Program, free_port};

pub(crate) const CLIENT_ID: &str = "bench";
pub(crate) const CLIENT_SECRET: &str = "a-secret-long-enough-for-a-bench";
/// Time for a republish of 100,000 merchants, and for everything shorter.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Auth {
    pub(crate) program: Program,
    pub(crate) database: Database,
    pub(crate) namespace: Arc<Namespace>,
    jwks_url: String,
    client: Client,
    token: String,
}

impl Auth {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::start_in(Arc::new(Namespace::create())).await
    }

    pub(crate) async fn start_in(namespace: Arc<Namespace>) -> anyhow::Result<Self> {
        let database = Database::create(App::migrations()).await;
        let (port, url) = (free_port()?, database.url());
        let (port_text, issuer) = (port.to_string(), format!("http://127.0.0.1:{port}"));
        let environment = [
            ("AUTH__HTTP__PORT", port_text.as_str()),
            ("AUTH__LIMITS__REQUESTS_PER_MINUTE", "100000000"),
            ("AUTH__DATABASE__URL", &url),
            ("AUTH__BROKER__URL", namespace.amqp_url()),
            ("AUTH__BROKER__NAMESPACE", &namespace.name),
            ("AUTH__SEALING__KEYS", sealing_keys()),
            ("AUTH__TOKENS__ISSUER", &issuer),
            ("AUTH__BOOTSTRAP__CLIENT_ID", CLIENT_ID),
            ("AUTH__BOOTSTRAP__CLIENT_SECRET", CLIENT_SECRET),
        ];
        let program = Program::start(App::NAME, &["serve"], &environment, port, "/readyz").await?;
        let client = platform::http_client(TIMEOUT)?;
        let token = testkit::eventually("the client gets a token", TIMEOUT, async || {
            request_token(&client, &program.url, (CLIENT_ID, CLIENT_SECRET)).await.ok()
        })
        .await;
        let jwks_url = format!("{issuer}/.well-known/jwks.json");
        Ok(Self { program, database, namespace, jwks_url, client, token })
    }

    /// The settings with which a service accepts tokens of this auth.
    pub(crate) fn identity_settings(&self) -> [(&str, &str); 2] {
        [("IDENTITY__ISSUER", &self.program.url), ("IDENTITY__JWKS_URL", &self.jwks_url)]
    }

    /// Sends a request of the operator and returns the response.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.program.url);
        let response = self.client.post(url).bearer_auth(&self.token).json(body).send().await?;
        let (status, text) = (response.status(), response.text().await?);
        anyhow::ensure!(status.is_success(), "{path}: {status}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) async fn create_merchant(&self, identifier: &str) -> anyhow::Result<()> {
        let merchant = json!({"identifier": identifier, "name": identifier});
        self.post("/v1/merchants", &merchant).await.map(drop)
    }

    /// Creates a client of a merchant and returns its id and secret.
    pub(crate) async fn create_client(
        &self,
        merchant: &str,
        scope: &str,
    ) -> anyhow::Result<(String, String)> {
        let client = json!({"merchant": merchant, "name": "bench", "scopes": [scope]});
        let created = self.post("/v1/clients", &client).await?;
        let text = |name| created.get(name).and_then(Value::as_str).map(str::to_owned);
        text("client_id").zip(text("client_secret")).context("the client has no secret")
    }

    /// A token of a client.
    pub(crate) async fn token(&self, id: &str, secret: &str) -> anyhow::Result<String> {
        request_token(&self.client, &self.program.url, (id, secret)).await
    }
}

async fn request_token(
    client: &Client,
    url: &str,
    (id, secret): (&str, &str),
) -> anyhow::Result<String> {
    let body =
        json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret});
    let response = client.post(format!("{url}/oauth/token")).json(&body).send().await?;
    let response: Value = response.error_for_status()?.json().await?;
    let token = response.get("access_token").and_then(Value::as_str);
    Ok(token.context("the response has no token")?.to_owned())
}
