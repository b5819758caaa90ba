//! Tokens checked against keys that another service publishes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};
use aws_lc_rs::signature::Ed25519KeyPair;
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet},
};
use platform::{Running, identity::Claims};
use reqwest::StatusCode;
use testkit::eventually;

use crate::{client, start};

/// A key and the name it is published under.
struct Key {
    id: &'static str,
    private: EncodingKey,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        Self { id, private: EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref()) }
    }

    fn public(&self) -> Jwk {
        let mut public = Jwk::from_encoding_key(&self.private, Algorithm::EdDSA).unwrap();
        public.common.key_id = Some(self.id.to_owned());
        public
    }

    fn token(&self, change: impl FnOnce(&mut Header, &mut Claims)) -> String {
        let now = platform::Clock::system().now().timestamp();
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
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(self.id.to_owned());
        change(&mut header, &mut claims);
        jsonwebtoken::encode(&header, &claims, &self.private).unwrap()
    }
}

/// Publishes keys, as auth does; what it publishes can be changed.
fn publish(keys: &Arc<Mutex<JwkSet>>) -> String {
    let keys = web::Data::from(keys.clone());
    let server = HttpServer::new(move || {
        let answer = |keys: web::Data<Mutex<JwkSet>>| async move {
            HttpResponse::Ok().json(&*keys.lock().unwrap())
        };
        App::new().app_data(keys.clone()).route("/jwks", web::get().to(answer))
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

async fn follow(url: &str) -> Running {
    start(&[
        ("IDENTITY__ISSUER", "https://auth.test"),
        ("IDENTITY__JWKS_URL", url),
        ("IDENTITY__REFRESH", "1h"),
    ])
    .await
}

async fn who(mirror: &Running, token: &str) -> StatusCode {
    let request = client()
        .get(format!("{}/who", mirror.url))
        .header("authorization", format!("bEaReR {token}"));
    request.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_our_own_unexpired_tokens_are_believed() {
    let (ours, theirs) = (Key::new("k1"), Key::new("k1"));
    let mirror =
        follow(&publish(&Arc::new(Mutex::new(JwkSet { keys: vec![ours.public()] })))).await;
    let good = ours.token(|_, _| {});
    eventually("keys were fetched", Duration::from_secs(10), async || {
        (who(&mirror, &good).await == StatusCode::OK).then_some(())
    })
    .await;
    let bad = [
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
        assert_eq!(who(&mirror, token).await, StatusCode::UNAUTHORIZED, "{token}");
    }
    assert!(mirror.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_nobody_told_us_of_is_fetched_when_a_token_names_it() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let published = Arc::new(Mutex::new(JwkSet { keys: vec![old.public()] }));
    let mirror = follow(&publish(&published)).await;
    eventually("keys were fetched", Duration::from_secs(10), async || {
        (who(&mirror, &old.token(|_, _| {})).await == StatusCode::OK).then_some(())
    })
    .await;
    published.lock().unwrap().keys.push(new.public());
    assert_eq!(who(&mirror, &new.token(|_, _| {})).await, StatusCode::OK);
    assert_eq!(who(&mirror, &old.token(|_, _| {})).await, StatusCode::OK);
    assert!(mirror.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_the_answer_is_come_back_later() {
    let mirror = follow("http://127.0.0.1:1/jwks").await;
    assert_eq!(
        who(&mirror, &Key::new("k").token(|_, _| {})).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let ready: serde_json::Value =
        client().get(format!("{}/readyz", mirror.url)).send().await.unwrap().json().await.unwrap();
    assert_eq!(ready["parts"]["keys"], "no signing keys yet");
    assert!(mirror.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_revocations_are_known_no_token_is_believed() {
    let key = Key::new("k1");
    let url = publish(&Arc::new(Mutex::new(JwkSet { keys: vec![key.public()] })));
    let mirror = start(&[
        ("IDENTITY__ISSUER", "https://auth.test"),
        ("IDENTITY__JWKS_URL", &url),
        ("IDENTITY__REFRESH", "1h"),
        ("IGNORANT", "true"),
    ])
    .await;
    let ready = format!("{}/readyz", mirror.url);
    eventually("keys were fetched", Duration::from_secs(10), async || {
        let parts = client().get(&ready).send().await.unwrap().text().await.unwrap();
        assert!(parts.contains(r#""revocations":"not read yet""#), "{parts}");
        parts.contains(r#""keys":"ok""#).then_some(())
    })
    .await;
    assert_eq!(who(&mirror, &key.token(|_, _| {})).await, StatusCode::SERVICE_UNAVAILABLE);
    assert!(mirror.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_of_keys_is_no_list() {
    let (key, keys) = (Key::new("first"), Arc::new(Mutex::new(JwkSet { keys: Vec::new() })));
    let mirror = follow(&publish(&keys)).await;
    let ready = format!("{}/readyz", mirror.url);
    let parts = client().get(&ready).send().await.unwrap().text().await.unwrap();
    assert!(parts.contains(r#""keys":"no signing keys yet""#), "{parts}");
    keys.lock().unwrap().keys.push(key.public());
    // Nobody has to come with a token first, and the next refresh is an hour away.
    eventually("the keys are there", Duration::from_secs(10), async || {
        let parts = client().get(&ready).send().await.unwrap().text().await.unwrap();
        parts.contains(r#""keys":"ok""#).then_some(())
    })
    .await;
    assert_eq!(who(&mirror, &key.token(|_, _| {})).await, StatusCode::OK);
    mirror.stop().await;
}
