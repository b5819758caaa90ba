//! The whole service over HTTP, with a real database and a real broker.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

mod merchants;
mod oauth;
mod revocation;

use std::time::Duration;

use auth::App;
use platform::Clock;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use testkit::{TestService, sealing_keys};

const OPERATOR: &str = "operator";
const OPERATOR_SECRET: &str = "a-secret-for-the-first-operator";
const SOON: Duration = Duration::from_secs(20);

/// An auth service and a client to call it with.
struct Auth {
    service: TestService,
    http: reqwest::Client,
    operator: String,
}

const SETTINGS: [(&str, &str); 5] = [
    ("TOKENS__ISSUER", "https://auth.test"),
    ("BOOTSTRAP__CLIENT_ID", OPERATOR),
    ("BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
    ("KEYS__PUBLISH_AHEAD", "0s"),
    ("SEALING__KEYS", ""),
];

fn settings<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut settings = SETTINGS.to_vec();
    settings.push(("SEALING__KEYS", sealing_keys()));
    settings.extend(more);
    settings
}

impl Auth {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    async fn with(more: &[(&str, &str)]) -> Self {
        Self::around(TestService::new::<App>(&settings(more)).await).await
    }

    async fn around(service: TestService) -> Self {
        let http = platform::http_client(Duration::from_secs(10)).unwrap();
        let mut auth = Self { service, http, operator: String::new() };
        auth.operator = testkit::eventually("the first operator is let in", SOON, async || {
            let (status, body) = auth.grant(OPERATOR, OPERATOR_SECRET).await;
            (status == StatusCode::OK).then(|| body["access_token"].as_str().unwrap().to_owned())
        })
        .await;
        auth
    }

    /// Stops the service and starts it again on the same data.
    async fn restart(self) -> Self {
        let (database, namespace) = self.service.stop().await;
        Self::around(
            TestService::on::<App>(&settings(&[]), Clock::system(), database, namespace).await,
        )
        .await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.service.url))
    }

    async fn grant(&self, id: &str, secret: &str) -> (StatusCode, Value) {
        let body =
            json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret});
        send(self.request(Method::POST, "/oauth/token").json(&body)).await
    }

    async fn token(&self, id: &str, secret: &str) -> String {
        let (status, body) = self.grant(id, secret).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["access_token"].as_str().unwrap().to_owned()
    }

    /// A call by the first operator.
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        self.call_as(&self.operator, method, path, body).await
    }

    async fn call_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let request = self.request(method, path).bearer_auth(token);
        send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
        .await
    }

    async fn add_merchant(&self, id: &str) -> Value {
        let body = json!({"identifier": id, "name": format!("The {id} company")});
        let (status, merchant) = self.call(Method::POST, "/v1/merchants", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{merchant}");
        merchant
    }

    /// A client's id and secret.
    async fn add_client(&self, merchant: Option<&str>, scopes: &[&str]) -> (String, String) {
        let body = json!({"merchant": merchant, "name": "a client", "scopes": scopes});
        let (status, client) = self.call(Method::POST, "/v1/clients", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{client}");
        let text = |field: &str| client[field].as_str().unwrap().to_owned();
        (text("client_id"), text("client_secret"))
    }

    async fn stop(self) {
        self.service.stop().await;
    }
}

async fn send(request: RequestBuilder) -> (StatusCode, Value) {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
    (status, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_it_lives_can_be_asked_without_its_secrets() {
    let auth = Auth::start().await;
    let port = auth.service.url.rsplit_once(':').unwrap().1.to_owned();
    let health = async |port: &str, arguments: &[&str]| {
        let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_auth"));
        program.env_clear().args(arguments).arg("health");
        if !port.is_empty() {
            program.env("AUTH__HTTP__PORT", port);
        }
        let ended = program.output().await.unwrap();
        (ended.status.success(), String::from_utf8(ended.stderr).unwrap())
    };
    assert_eq!(health(&port, &[]).await, (true, String::new()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    std::fs::write(&file, format!("[http]\nport = {port}\n")).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(health("", &["--config", file]).await, (true, String::new()));
    assert!(!health("1", &["--config", file]).await.0);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_serve_would_refuse_is_refused_by_check() {
    let check = async |more: &[(&str, &str)]| {
        let good = [
            ("AUTH__DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing"),
            ("AUTH__BROKER__URL", "amqp://127.0.0.1:1"),
            ("AUTH__SEALING__KEYS", sealing_keys()),
            ("AUTH__BOOTSTRAP__CLIENT_ID", OPERATOR),
            ("AUTH__BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
        ];
        let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_auth"));
        program.env_clear().envs(good).envs(more.iter().copied()).arg("check");
        String::from_utf8(program.output().await.unwrap().stderr).unwrap()
    };
    assert_eq!(check(&[]).await, "");
    for (setting, complaint) in [
        (("AUTH__SEALING__KEYS", "k1:short"), "sealing.keys entry 0"),
        (("AUTH__SEALING__KEYS", ""), "sealing.keys is empty"),
        (("AUTH__BOOTSTRAP__CLIENT_SECRET", "secret"), "at least 20 characters"),
        (("AUTH__HTTP__HOST", "0.0.0.0"), "http.tls is not set"),
    ] {
        let said = check(&[setting]).await;
        assert!(said.contains(complaint), "{setting:?}: {said}");
    }
    let nowhere = ("AUTH__HTTP__TLS__CERTIFICATE", "/nowhere/tls.crt");
    let said = check(&[nowhere, ("AUTH__HTTP__TLS__KEY", "/nowhere/tls.key")]).await;
    assert!(said.contains("/nowhere/tls."), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_in_the_repository_is_the_one_the_code_speaks() {
    testkit::check_contract("openapi/auth.yaml", &platform::openapi::<App>().to_yaml().unwrap());
}
