//! The service under test and the requests that tests send to it.

use std::time::Duration;

use auth::App;
use platform::{Clock, Running};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
pub(crate) use testkit::send;
use testkit::{
    Database, Listener, Namespace, SharedService, TestService, eventually, sealing_keys,
};
use tokio::sync::OnceCell;

pub(crate) const OPERATOR: &str = "operator";
pub(crate) const OPERATOR_SECRET: &str = "a-secret-for-the-first-operator";
/// Settings with which tests can fail as often as they like.
pub(crate) const NO_LOCKOUT: [(&str, &str); 1] =
    [("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "1000")];
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// The service of all tests that need none of their own.
static SHARED: SharedService = SharedService::without_issuer(&QUEUES);
/// The queues of order-intake that this service publishes to.
const QUEUES: [&str; 3] = [
    "order-intake.merchant.changed.v1",
    "order-intake.token.revoked.v1",
    "rma-engine.endpoint.paused.v1",
];
/// More audit records than all tests write during a few requests.
const AUDIT_PAGE: &str = "/v1/audit?limit=200";

/// The auth service, with a token of the first operator.
///
/// In the shared service, the merchants acme and rival and the addresses at example.com have names of their own in
/// each test. Requests get these names, and responses come without them.
pub(crate) struct TestApp {
    pub(crate) service: TestService,
    pub(crate) http: reqwest::Client,
    pub(crate) clock: Clock,
    pub(crate) operator_token: String,
    listener: OnceCell<Listener>,
}

fn with_defaults<'a>(settings: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let defaults = [
        ("TOKENS__ISSUER", "https://auth.test"),
        ("BOOTSTRAP__CLIENT_ID", OPERATOR),
        ("BOOTSTRAP__CLIENT_SECRET", OPERATOR_SECRET),
        ("KEYS__PUBLISH_AHEAD", "0s"),
        ("SEALING__KEYS", sealing_keys()),
        ("BRUTE_FORCE__FAILURE_LATENCY_STEP", "0s"),
    ];
    defaults.iter().chain(settings).copied().collect()
}

impl TestApp {
    /// Uses the service that all tests share.
    pub(crate) async fn start() -> Self {
        let (service, _) = SHARED.join::<App>(&with_defaults(&NO_LOCKOUT)).await;
        Self::connect(service, Clock::system()).await
    }

    /// Starts a service for a test that stops it, changes its keys or tables, or looks at all merchants or people.
    pub(crate) async fn alone() -> Self {
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
        let mut app =
            Self { service, http, clock, operator_token: String::new(), listener: OnceCell::new() };
        app.operator_token = eventually("the first operator gets a token", TIMEOUT, async || {
            let (status, body) = app.request_token(OPERATOR, OPERATOR_SECRET).await;
            (status == StatusCode::OK).then(|| text(&body, "access_token"))
        })
        .await;
        app
    }

    /// Stops the service and starts it again with the same database and broker namespace.
    pub(crate) async fn restart(self) -> Self {
        let (database, namespace) = self.into_stopped().await;
        let settings = with_defaults(&[]);
        let clock = Clock::system();
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
        self.into_stopped().await;
    }

    async fn into_stopped(self) -> (Database, Namespace) {
        // The listener uses the namespace too.
        drop(self.listener);
        self.service.stop().await
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{}", self.service.url, self.own(path)))
    }

    /// A text of the test with the names that its merchants and people have in the service.
    pub(crate) fn own(&self, text: &str) -> String {
        let text = text.replace("example.com", &format!("example{}.com", self.service.own("")));
        ["acme", "rival"].into_iter().fold(text, |text, name| {
            let places = ["\"_\"", "/merchants/_", "=_", "_.example"].into_iter();
            places.fold(text, |text, place| {
                let own = place.replace('_', &self.service.own(name));
                text.replace(&place.replace('_', name), &own)
            })
        })
    }

    /// Sends a request with a body, and returns the response with the names of the test.
    async fn send(&self, mut request: RequestBuilder, body: Option<&Value>) -> (StatusCode, Value) {
        if let Some(body) = body {
            let body = self.own(&body.to_string());
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let (status, body) = send(request).await;
        (status, serde_json::from_str(&self.service.without_suffix(&body.to_string())).unwrap())
    }

    /// Sends a request without a token.
    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send(self.request(Method::POST, path), Some(&body)).await
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
        self.send(self.request(method, path).bearer_auth(token), body.as_ref()).await
    }

    /// Sends a POST request with an idempotency key.
    pub(crate) async fn call_with_key(
        &self,
        token: &str,
        key: &str,
        path: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        let request = self.request(Method::POST, path).header("idempotency-key", key);
        self.send(request.bearer_auth(token), Some(&body)).await
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

    /// The audit records that name merchants or people of this test, newest first.
    pub(crate) async fn audit_records(&self) -> Vec<Value> {
        let request = self.request(Method::GET, AUDIT_PAGE).bearer_auth(&self.operator_token);
        let (_, page) = send(request).await;
        let records = page["records"].as_array().unwrap().iter().map(Value::to_string);
        let own = records.filter(|record| record.contains(&self.service.own("")));
        own.map(|it| serde_json::from_str(&self.service.without_suffix(&it)).unwrap()).collect()
    }

    /// The published public keys.
    pub(crate) async fn public_keys(&self) -> Vec<Value> {
        let (_, body) = send(self.request(Method::GET, "/.well-known/jwks.json")).await;
        body["keys"].as_array().unwrap().clone()
    }

    /// The data of the events of this test's merchants in a queue.
    pub(crate) async fn events(&self, queue: &str) -> Vec<Value> {
        let listener = self.listener.get_or_init(|| self.service.listener(&QUEUES)).await;
        let events = self.service.own_events(listener, queue);
        events.into_iter().map(|mut event| event["data"].take()).collect()
    }

    /// Waits until a queue got this number of events of this test's merchants, and no more, and returns their data.
    pub(crate) async fn events_in(&self, queue: &str, count: usize) -> Vec<Value> {
        let listener = self.listener.get_or_init(|| self.service.listener(&QUEUES)).await;
        let events = self.service.events_in(listener, queue, count).await;
        events.into_iter().map(|mut event| event["data"].take()).collect()
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

pub(crate) fn text(body: &Value, field: &str) -> String {
    body[field].as_str().unwrap().to_owned()
}
