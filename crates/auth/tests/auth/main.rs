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
use testkit::{Started, sealing_keys};

const OPERATOR: &str = "operator";
const OPERATOR_SECRET: &str = "a-secret-for-the-first-operator";
const SOON: Duration = Duration::from_secs(20);

/// An auth service and a client to call it with.
struct Auth {
    service: Started,
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
        Self::around(Started::new::<App>(&settings(more)).await).await
    }

    async fn around(service: Started) -> Self {
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
        Self::around(Started::on::<App>(&settings(&[]), Clock::system(), database, namespace).await)
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
async fn the_contract_in_the_repository_is_the_one_the_code_speaks() {
    testkit::check_contract("openapi/auth.yaml", &platform::openapi::<App>().to_yaml().unwrap());
}
