//! Tokens checked against the keys that auth publishes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use aws_lc_rs::signature::Ed25519KeyPair;
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, PublicKeyUse},
};
use platform::{Running, identity::Claims};
use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::eventually;

use crate::{client, start};

/// A key and the name it is published under.
pub(crate) struct Key {
    id: &'static str,
    private: EncodingKey,
}

impl Key {
    pub(crate) fn new(id: &'static str) -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        Self { id, private: EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref()) }
    }

    pub(crate) fn public(&self) -> Value {
        self.public_for(None)
    }

    fn public_for(&self, public_key_use: Option<PublicKeyUse>) -> Value {
        let mut public = Jwk::from_encoding_key(&self.private, Algorithm::EdDSA).unwrap();
        public.common.key_id = Some(self.id.to_owned());
        public.common.public_key_use = public_key_use;
        serde_json::to_value(public).unwrap()
    }

    pub(crate) fn token(&self, change: impl FnOnce(&mut Header, &mut Claims)) -> String {
        let now = now();
        let mut claims = Claims {
            iss: "https://auth.test".into(),
            sub: "c1".into(),
            aud: "backhaul".into(),
            client_id: "c1".into(),
            jti: "j1".into(),
            iat: now,
            exp: now + 60,
            scope: "orders".parse().unwrap(),
            merchant: None,
            sid: None,
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(self.id.to_owned());
        change(&mut header, &mut claims);
        self.sign(&header, &claims)
    }

    /// A token with this additional claim.
    pub(crate) fn token_with(&self, claim: &str, value: Value) -> String {
        let mut claims = Value::Null;
        let mut header = Header::new(Algorithm::EdDSA);
        self.token(|token_header, token_claims| {
            header = token_header.clone();
            claims = serde_json::to_value(token_claims).unwrap();
        });
        claims[claim] = value;
        self.sign(&header, &claims)
    }

    fn sign<T: serde::Serialize>(&self, header: &Header, claims: &T) -> String {
        jsonwebtoken::encode(header, claims, &self.private).unwrap()
    }
}

fn now() -> i64 {
    platform::Clock::system().now().timestamp()
}

/// The keys that are published; they can be changed.
pub(crate) type PublishedKeys = Arc<Mutex<Vec<Value>>>;

/// Publishes keys, as auth does.
pub(crate) fn publish(keys: &PublishedKeys) -> String {
    let keys = web::Data::from(keys.clone());
    let server = HttpServer::new(move || {
        let response = |keys: web::Data<Mutex<Vec<Value>>>| async move {
            HttpResponse::Ok().json(json!({ "keys": *keys.lock().unwrap() }))
        };
        App::new().app_data(keys.clone()).route("/jwks", web::get().to(response))
    })
    .workers(1)
    .disable_signals()
    .bind("127.0.0.1:0")
    .unwrap();
    let url = format!("http://{}/jwks", server.addrs()[0]);
    #[expect(clippy::disallowed_methods, reason = "lives as long as the test")]
    tokio::spawn(server.run());
    url
}

pub(crate) async fn start_with_jwks(url: &str) -> Running {
    start(&[
        ("IDENTITY__ISSUER", "https://auth.test"),
        ("IDENTITY__JWKS_URL", url),
        ("IDENTITY__JWKS_REFRESH_INTERVAL", "1h"),
    ])
    .await
}

/// Waits until the service accepts a valid token.
pub(crate) async fn wait_for_keys(service: &Running, token: &str) {
    eventually("keys were fetched", Duration::from_secs(300), async || {
        (who(service, token).await == StatusCode::OK).then_some(())
    })
    .await;
}

async fn who(service: &Running, token: &str) -> StatusCode {
    let request = client()
        .get(format!("{}/who", service.url))
        .header("authorization", format!("bEaReR {token}"));
    request.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_valid_tokens_of_auth_are_accepted() {
    let ours = Key::new("k1");
    let theirs = Key::new("k1");
    let encryption = Key::new("k2");
    let unreadable = json!({ "kty": "OKP", "crv": "X25519", "use": "enc", "kid": "k3", "x": "AA" });
    let keys =
        vec![unreadable, encryption.public_for(Some(PublicKeyUse::Encryption)), ours.public()];
    let service = start_with_jwks(&publish(&Arc::new(Mutex::new(keys)))).await;
    let good = ours.token(|_, _| {});
    wait_for_keys(&service, &good).await;
    assert_eq!(who(&service, &ours.token_with("nbf", json!(now() - 60))).await, StatusCode::OK);
    let bad = [
        encryption.token(|_, _| {}),
        ours.token(|header, _| header.crit = Some(vec!["exp".to_owned()])),
        ours.token_with("nbf", json!(now() + 3600)),
        ours.token_with("nbf", json!("tomorrow")),
        theirs.token(|_, _| {}),
        ours.token(|_, claims| claims.exp = claims.iat - 1),
        ours.token(|_, claims| claims.iss = "https://evil.test".into()),
        ours.token(|_, claims| claims.aud = "another".into()),
        ours.token(|header, _| header.typ = Some("JWT".to_owned())),
        ours.token(|header, _| header.typ = None),
        ours.token(|header, _| header.kid = None),
        format!("{}.", good.rsplit_once('.').unwrap().0),
        format!("eyJhbGciOiJub25lIn0.{}.", good.split('.').nth(1).unwrap()),
    ];
    for token in &bad {
        assert_eq!(who(&service, token).await, StatusCode::UNAUTHORIZED, "{token}");
    }
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_is_fetched_when_a_token_names_it() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let published = Arc::new(Mutex::new(vec![old.public()]));
    let service = start_with_jwks(&publish(&published)).await;
    wait_for_keys(&service, &old.token(|_, _| {})).await;
    published.lock().unwrap().push(new.public());
    assert_eq!(who(&service, &new.token(|_, _| {})).await, StatusCode::OK);
    assert_eq!(who(&service, &old.token(|_, _| {})).await, StatusCode::OK);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_the_response_is_503() {
    let service = start_with_jwks("http://127.0.0.1:1/jwks").await;
    assert_eq!(
        who(&service, &Key::new("k").token(|_, _| {})).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let ready: Value =
        client().get(format!("{}/readyz", service.url)).send().await.unwrap().json().await.unwrap();
    assert_eq!(ready["parts"]["keys"], "no signing keys yet");
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_revocations_are_loaded_no_token_is_accepted() {
    let key = Key::new("k1");
    let url = publish(&Arc::new(Mutex::new(vec![key.public()])));
    let service = start(&[
        ("IDENTITY__ISSUER", "https://auth.test"),
        ("IDENTITY__JWKS_URL", &url),
        ("IDENTITY__JWKS_REFRESH_INTERVAL", "1h"),
        ("WITHOUT_REVOCATIONS", "true"),
    ])
    .await;
    let ready = format!("{}/readyz", service.url);
    eventually("keys were fetched", Duration::from_secs(300), async || {
        let parts = client().get(&ready).send().await.unwrap().text().await.unwrap();
        assert!(parts.contains(r#""revocations":"not loaded yet""#), "{parts}");
        parts.contains(r#""keys":"ok""#).then_some(())
    })
    .await;
    assert_eq!(who(&service, &key.token(|_, _| {})).await, StatusCode::SERVICE_UNAVAILABLE);
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_of_keys_is_fetched_again() {
    let key = Key::new("first");
    let keys = Arc::new(Mutex::new(Vec::new()));
    let service = start_with_jwks(&publish(&keys)).await;
    let ready = format!("{}/readyz", service.url);
    let parts = client().get(&ready).send().await.unwrap().text().await.unwrap();
    assert!(parts.contains(r#""keys":"no signing keys yet""#), "{parts}");
    keys.lock().unwrap().push(key.public());
    // No token has to arrive first, and the next refresh is an hour later.
    eventually("the keys are there", Duration::from_secs(300), async || {
        let parts = client().get(&ready).send().await.unwrap().text().await.unwrap();
        parts.contains(r#""keys":"ok""#).then_some(())
    })
    .await;
    assert_eq!(who(&service, &key.token(|_, _| {})).await, StatusCode::OK);
    service.stop().await;
}
