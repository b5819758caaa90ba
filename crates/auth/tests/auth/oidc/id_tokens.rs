//! Tests of the check of ID tokens.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{OidcApp, assert_refused};
use crate::oidc_provider::{CLIENT_ID, CLIENT_SECRET, Key, unsigned};

/// A change of the claims, with a name for error messages.
type Case = (&'static str, fn(&mut Value));

#[tokio::test(flavor = "multi_thread")]
async fn tokens_with_unacceptable_claims_are_refused() {
    let app = OidcApp::start().await;
    let cases: [Case; 18] = [
        ("other issuer", |claims| claims["iss"] = json!("https://evil.example")),
        ("no issuer", |claims| claims["iss"] = Value::Null),
        ("other audience", |claims| claims["aud"] = json!("another-client")),
        ("no audience", |claims| claims["aud"] = Value::Null),
        ("several audiences", |claims| claims["aud"] = json!([CLIENT_ID, "another-client"])),
        ("azp of another client", |claims| claims["azp"] = json!("another-client")),
        ("expired", |claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() - 120)),
        ("no expiry", |claims| claims["exp"] = Value::Null),
        ("issued in the future", |claims| {
            claims["iat"] = json!(claims["iat"].as_i64().unwrap() + 120);
        }),
        ("issued before the sign-in", |claims| {
            claims["iat"] = json!(claims["iat"].as_i64().unwrap() - 720);
        }),
        ("no time of issue", |claims| claims["iat"] = Value::Null),
        ("other nonce", |claims| claims["nonce"] = json!("guess")),
        ("no nonce", |claims| claims["nonce"] = Value::Null),
        ("no subject", |claims| claims["sub"] = Value::Null),
        ("no e-mail address", |claims| claims["email"] = Value::Null),
        ("invalid e-mail address", |claims| claims["email"] = json!("ada")),
        ("unverified e-mail address", |claims| claims["email_verified"] = json!(false)),
        ("perhaps verified", |claims| claims["email_verified"] = Value::Null),
    ];
    for (case, change) in cases {
        assert_refused(app.sign_in_with(change).await, case);
    }
    let (status, body) = app
        .sign_in_with(|claims| {
            claims["aud"] = json!([CLIENT_ID, "another-client"]);
            claims["azp"] = json!(CLIENT_ID);
        })
        .await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_signatures_are_accepted() {
    let app = OidcApp::start().await;
    for algorithm in [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA] {
        // Auth reads the keys again, because it does not know this one.
        let key = Key::generate(&format!("{algorithm:?}"), algorithm);
        app.provider.state().keys.push(key.clone());
        let (status, body) = app.sign_in(|claims| key.sign(&claims)).await;
        assert_eq!(status, StatusCode::CREATED, "{algorithm:?}: {body}");
    }
    let requests = app.provider.state().key_requests;
    assert_eq!(app.sign_in_with(|_| ()).await.0, StatusCode::CREATED);
    assert_eq!(app.provider.state().key_requests, requests, "the keys are cached");

    let none = |claims: Value| unsigned(&json!({"alg": "none", "kid": "k1"}), &claims);
    assert_refused(app.sign_in(none).await, "no signature");
    let without_signature =
        |claims: Value| unsigned(&json!({"alg": "EdDSA", "kid": "k1"}), &claims);
    assert_refused(app.sign_in(without_signature).await, "empty signature");
    let shared = |claims: Value| {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("k1".to_owned());
        let key = EncodingKey::from_secret(CLIENT_SECRET.as_bytes());
        jsonwebtoken::encode(&header, &claims, &key).unwrap()
    };
    assert_refused(app.sign_in(shared).await, "signature with the client secret");
    let forged = Key::generate("k1", Algorithm::EdDSA);
    assert_refused(app.sign_in(|claims| forged.sign(&claims)).await, "signature of another key");
    let other_algorithm = Key::generate("k1", Algorithm::ES256);
    let confused = app.sign_in(|claims| other_algorithm.sign(&claims)).await;
    assert_refused(confused, "algorithm of another key");
    let unknown = Key::generate("unpublished", Algorithm::EdDSA);
    assert_refused(app.sign_in(|claims| unknown.sign(&claims)).await, "unknown key");
    assert_refused(app.sign_in(|_| "not a token".to_owned()).await, "no token");

    // A key that the provider withdrew is refused as soon as auth has read the keys again.
    app.provider.state().keys.retain(|key| key.id != "k1");
    assert_refused(app.sign_in(|claims| unknown.sign(&claims)).await, "unknown key");
    assert_refused(app.sign_in_with(|_| ()).await, "withdrawn key");
    app.stop().await;
}
