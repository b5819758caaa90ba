//! Tests of signing in with an OpenID provider.

mod id_tokens;
mod people;

use chrono::TimeDelta;
use jsonwebtoken::Algorithm;
use platform::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    app::{TestApp, send},
    oidc_provider::{CLIENT_ID, CLIENT_SECRET, Key, OidcProvider},
    person::TestClock,
};

const EMAIL: &str = "ada@example.com";

/// Auth and its provider, with a clock that tests can advance.
struct OidcApp {
    app: TestApp,
    provider: OidcProvider,
    key: Key,
    clock: TestClock,
}

impl OidcApp {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(settings: &[(&str, &str)]) -> Self {
        let provider = OidcProvider::start();
        let key = Key::generate("k1", Algorithm::EdDSA);
        provider.state().keys.push(key.clone());
        let oidc = [
            ("OIDC__ISSUER", provider.url.as_str()),
            ("OIDC__NAME", "Example ID"),
            ("OIDC__CLIENT_ID", CLIENT_ID),
            ("OIDC__CLIENT_SECRET", CLIENT_SECRET),
            ("OIDC__ROLES", "admins=operator, shop=merchant-admin:acme, staff=support"),
        ];
        let settings: Vec<_> = oidc.iter().chain(settings).copied().collect();
        let clock = TestClock::new();
        let app = TestApp::start_with_clock(clock.clock(), &settings).await;
        app.create_merchant("acme").await;
        Self { app, provider, key, clock }
    }

    async fn stop(self) {
        self.provider.stop().await;
        self.app.stop().await;
    }

    fn now(&self) -> Timestamp {
        self.app.clock.now()
    }

    async fn begin(&self) -> (String, Value) {
        let (status, started) = self.app.post("/v1/oidc/start", json!({})).await;
        assert_eq!(status, StatusCode::OK, "{started}");
        (started["authorization_url"].as_str().unwrap().to_owned(), started["flow"].clone())
    }

    /// The claims of a person in the group `staff`.
    fn claims(&self, nonce: &str) -> Value {
        json!({
            "iss": self.provider.url, "sub": "u-1", "aud": CLIENT_ID, "nonce": nonce,
            "iat": self.now().timestamp(), "exp": self.now().timestamp() + 300,
            "email": EMAIL, "email_verified": true, "name": "Ada", "groups": ["staff"],
        })
    }

    /// Signs in with the token that `id_token` makes of the claims.
    async fn sign_in(&self, id_token: impl FnOnce(Value) -> String) -> (StatusCode, Value) {
        let (url, flow) = self.begin().await;
        let (code, state) = self.provider.authorize(&url, |nonce| id_token(self.claims(nonce)));
        self.finish(&flow, &code, &state).await
    }

    /// Signs in with the claims that `change` changes.
    async fn sign_in_with(&self, change: impl FnOnce(&mut Value)) -> (StatusCode, Value) {
        self.sign_in(|mut claims| {
            change(&mut claims);
            self.key.sign(&claims)
        })
        .await
    }

    async fn finish(&self, flow: &Value, code: &str, state: &str) -> (StatusCode, Value) {
        let body = json!({"flow": flow, "code": code, "state": state, "user_agent": "Test/1.0"});
        self.app.post("/v1/oidc/finish", body).await
    }

    async fn person(&self) -> Value {
        self.app.call(Method::GET, &format!("/v1/people/{EMAIL}"), None).await.1
    }
}

#[track_caller]
fn assert_refused((status, body): (StatusCode, Value), case: &str) {
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{case}: {body}");
    let message = "signing in with the OpenID provider failed: try again";
    assert_eq!(body["message"], message, "{case}");
}

#[tokio::test(flavor = "multi_thread")]
async fn state_flow_and_code_must_belong_together() {
    let app = OidcApp::start().await;
    let id_token = |nonce: &str| app.key.sign(&app.claims(nonce));
    let (url, flow) = app.begin().await;
    let (_, other_flow) = app.begin().await;
    let (code, state) = app.provider.authorize(&url, id_token);
    assert_refused(app.finish(&flow, &code, "guess").await, "other state");
    assert_refused(app.finish(&other_flow, &code, &state).await, "flow of another sign-in");
    for flow in [json!(""), json!("test.AAAA"), json!(format!("{}x", flow.as_str().unwrap()))] {
        assert_refused(app.finish(&flow, &code, &state).await, "changed flow");
    }
    assert_refused(app.finish(&flow, "guess", &state).await, "unknown code");
    let (status, body) = app.finish(&flow, &code, &state).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    assert_refused(app.finish(&flow, &code, &state).await, "a code works once");

    let (url, flow) = app.begin().await;
    app.clock.advance(TimeDelta::seconds(601));
    let (code, state) = app.provider.authorize(&url, id_token);
    assert_refused(app.finish(&flow, &code, &state).await, "expired flow");
    let (status, body) = app.app.post("/v1/oidc/finish", json!({"flow": "x"})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_provider_is_a_503() {
    let app = OidcApp::start().await;
    let unavailable = async || app.app.post("/v1/oidc/start", json!({})).await.0;
    for (name, value) in [
        ("issuer", json!("https://evil.example")),
        ("token_endpoint", json!("http://id.example/token")),
        ("jwks_uri", Value::Null),
        ("padding", json!("x".repeat(300_000))),
    ] {
        app.provider.state().metadata.insert(name, value);
        assert_eq!(unavailable().await, StatusCode::SERVICE_UNAVAILABLE, "{name}");
        app.provider.state().metadata.clear();
    }
    let (url, flow) = app.begin().await;
    let (code, state) = app.provider.authorize(&url, |nonce| app.key.sign(&app.claims(nonce)));
    app.provider.stop().await;
    let (status, _) = app.finish(&flow, &code, &state).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_email_verified_can_be_accepted() {
    let app = OidcApp::start_with(&[("OIDC__REQUIRE_VERIFIED_EMAIL", "false")]).await;
    let missing = app.sign_in_with(|claims| claims["email_verified"] = Value::Null).await;
    assert_eq!(missing.0, StatusCode::CREATED, "{}", missing.1);
    let denied = app.sign_in_with(|claims| claims["email_verified"] = json!(false)).await;
    assert_refused(denied, "unverified e-mail address");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_there_is_no_sign_in_with_one() {
    let app = TestApp::start().await;
    let (_, methods) = send(app.request(Method::GET, "/v1/sign_in_methods")).await;
    assert_eq!(methods, json!({"password": true, "oidc": null}));
    let start = app.request(Method::POST, "/v1/oidc/start").json(&json!({}));
    assert_eq!(send(start).await.0, StatusCode::NOT_FOUND);
}
