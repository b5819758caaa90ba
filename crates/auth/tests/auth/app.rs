//! The service under test and the requests that tests send to it.

use std::time::Duration;

use auth::App;
use platform::{Clock, Running};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use testkit::{TestService, eventually, sealing_keys};

pub(crate) const OPERATOR: &str = "operator";
pub(crate) const OPERATOR_SECRET: &str = "a-secret-for-the-first-operator";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// The auth service, with a token of the first operator.
pub(crate) struct TestApp {
    pub(crate) service: TestService,
    pub(crate) http: reqwest::Client,
    pub(crate) clock: Clock,
    pub(crate) operator_token: String,
}

fn with_defaults<'a>(settings: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let defaults = [
        ("TOKENS__ISSUER", "https://auth.test"),
        ("BOOTSTRAP__CLIENT_ID", OPERATOR),
        ("BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
        ("KEYS__PUBLISH_AHEAD", "0s"),
        ("SEALING__KEYS", sealing_keys()),
    ];
    defaults.iter().chain(settings).copied().collect()
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_with_clock(Clock::system(), settings).await
    }

    pub(crate) async fn start_with_clock(clock: Clock, settings: &[(&str, &str)]) -> Self {
        let settings = with_defaults(settings);
        let service = TestService::with_clock::<App>(&settings, clock.clone()).await;
        Self::connect(service, clock).await
    }

    async fn connect(service: TestService, clock: Clock) -> Self {
        let http = platform::http_client(Duration::from_secs(300)).unwrap();
        let mut app = Self { service, http, clock, operator_token: String::new() };
        app.operator_token = eventually("the first operator gets a token", TIMEOUT, async || {
            let (status, body) = app.request_token(OPERATOR, OPERATOR_SECRET).await;
            (status == StatusCode::OK).then(|| text(&body, "access_token"))
        })
        .await;
        app
    }

    /// Stops the service and starts it again with the same database and broker namespace.
    pub(crate) async fn restart(self) -> Self {
        let (database, namespace) = self.service.stop().await;
        let (settings, clock) = (with_defaults(&[]), Clock::system());
        let service = TestService::on::<App>(&settings, clock.clone(), database, namespace).await;
        Self::connect(service, clock).await
    }

    /// Starts another replica and waits until it is ready.
    pub(crate) async fn start_replica(&self) -> Running {
        self.start_replica_with_clock(Clock::system()).await
    }

    pub(crate) async fn start_replica_with_clock(&self, clock: Clock) -> Running {
        let TestService { database, namespace, .. } = &self.service;
        testkit::run::<App>(&with_defaults(&[]), clock, database, namespace).await
    }

    /// Starts another replica, which may not become ready.
    pub(crate) async fn launch_replica(&self) -> Running {
        let TestService { database, namespace, .. } = &self.service;
        testkit::launch::<App>(&with_defaults(&[]), Clock::system(), database, namespace).await
    }

    pub(crate) async fn stop(self) {
        self.service.stop().await;
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.service.url))
    }

    pub(crate) async fn request_token(&self, id: &str, secret: &str) -> (StatusCode, Value) {
        send(self.request(Method::POST, "/oauth/token").json(&token_request(id, secret))).await
    }

    pub(crate) async fn token(&self, id: &str, secret: &str) -> String {
        let (status, body) = self.request_token(id, secret).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        text(&body, "access_token")
    }

    /// Sends a request of the first operator.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        self.call_as(&self.operator_token, method, path, body).await
    }

    pub(crate) async fn call_as(
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

    pub(crate) async fn create_merchant(&self, id: &str) -> Value {
        let body = json!({"identifier": id, "name": format!("The {id} company")});
        let (status, merchant) = self.call(Method::POST, "/v1/merchants", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{merchant}");
        merchant
    }

    /// Creates a client and returns its id and secret.
    pub(crate) async fn create_client(
        &self,
        merchant: Option<&str>,
        scopes: &[&str],
    ) -> (String, String) {
        let body = json!({"merchant": merchant, "name": "a client", "scopes": scopes});
        let (status, client) = self.call(Method::POST, "/v1/clients", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{client}");
        (text(&client, "client_id"), text(&client, "client_secret"))
    }

    /// The audit records, newest first.
    pub(crate) async fn audit_records(&self) -> Vec<Value> {
        let (_, page) = self.call(Method::GET, "/v1/audit", None).await;
        page["records"].as_array().unwrap().clone()
    }

    /// The published public keys.
    pub(crate) async fn public_keys(&self) -> Vec<Value> {
        let (_, body) = send(self.request(Method::GET, "/.well-known/jwks.json")).await;
        body["keys"].as_array().unwrap().clone()
    }

    /// The data of the events in a queue.
    pub(crate) async fn events(&self, queue: &str) -> Vec<Value> {
        let messages = self.service.namespace.peek(queue).await;
        let data = |message: &Value| {
            let event: Value = serde_json::from_str(message["payload"].as_str().unwrap()).unwrap();
            event["data"].clone()
        };
        messages.iter().map(data).collect()
    }
}

pub(crate) fn token_request(id: &str, secret: &str) -> Value {
    json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret})
}

pub(crate) fn form(request: RequestBuilder, fields: &str) -> RequestBuilder {
    request
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(fields.to_owned())
}

pub(crate) async fn send(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
    (status, body)
}

pub(crate) fn text(body: &Value, field: &str) -> String {
    body[field].as_str().unwrap().to_owned()
}
