//! Tests of signing keys and their rotation.

use chrono::TimeDelta;
use platform::Clock;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::{OPERATOR, OPERATOR_SECRET, TIMEOUT, TestApp};

/// The key id in the header of a token.
fn key_id(token: &str) -> String {
    use base64::Engine as _;
    let header = token.split('.').next().unwrap();
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

/// The subjects and actors of the audit records of an action, newest first.
async fn subjects_and_actors(app: &TestApp, action: &str) -> Vec<(Value, Value)> {
    let records = app.audit_records().await;
    let matching = records.iter().filter(|record| record["action"] == action);
    matching.map(|record| (record["subject"].clone(), record["actor"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_stay_valid_when_keys_rotate() {
    let app = TestApp::alone().await;
    let old = app.token(OPERATOR, OPERATOR_SECRET).await;
    let (status, key) = app.call(Method::POST, "/v1/signing_keys/rotate", None).await;
    assert_eq!(status, StatusCode::CREATED);
    let new = app.token(OPERATOR, OPERATOR_SECRET).await;
    assert_ne!(key_id(&old), key_id(&new));
    assert_eq!(key_id(&new), key["id"].as_str().unwrap());
    for token in [&old, &new] {
        let (status, _) = app.call_as(token, Method::GET, "/v1/merchants", None).await;
        assert_eq!(status, StatusCode::OK);
    }
    let keys = app.public_keys().await;
    let ids: Vec<_> = keys.iter().map(|key| key["kid"].as_str().unwrap()).collect();
    assert_eq!(ids, [key_id(&old), key_id(&new)]);
    assert!(keys.iter().all(|key| key.get("d").is_none()), "private keys are published");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn creation_and_deletion_of_keys_are_audited() {
    let mut app = TestApp::alone().await;
    let first = json!(format!("signing_key/{}", key_id(&app.operator_token)));
    let (_, key) = app.call(Method::POST, "/v1/signing_keys/rotate", None).await;
    let second = json!(format!("signing_key/{}", key["id"].as_str().unwrap()));
    // The second key signs this token, which therefore outlives the first key.
    app.operator_token = app.token(OPERATOR, OPERATOR_SECRET).await;
    let created = subjects_and_actors(&app, "signing_key.created").await;
    assert_eq!(created, [(second, json!(OPERATOR)), (first.clone(), json!("key_rotation"))]);
    assert_eq!(subjects_and_actors(&app, "signing_key.deleted").await, []);

    // Tokens live for 25 hours.
    let age = "UPDATE signing_keys SET activates_at = activates_at - INTERVAL '26 hours'";
    app.service.database.execute_raw(age).await;
    testkit::eventually("one key is published", TIMEOUT, async || {
        (app.public_keys().await.len() == 1).then_some(())
    })
    .await;
    let deleted = subjects_and_actors(&app, "signing_key.deleted").await;
    assert_eq!(deleted, [(first, json!("key_rotation"))]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_whose_clock_is_ahead_deletes_no_key() {
    let app = TestApp::alone().await;
    let old = key_id(&app.operator_token);
    let (status, _) = app.call(Method::POST, "/v1/signing_keys/rotate", None).await;
    assert_eq!(status, StatusCode::CREATED);
    // A replica deletes retired keys before it is ready.
    let ahead = Clock::from_fn(|| Clock::system().now() + TimeDelta::days(2));
    let replica = app.start_replica_with_clock(ahead).await;
    let kept = format!("SELECT count(*) AS n FROM signing_keys WHERE id = '{old}'");
    assert_eq!(app.service.database.count(&kept).await, 1);
    assert!(replica.stop().await);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_all_keys_ends_a_leaked_key() {
    let app = TestApp::start_with(&[("KEYS__PUBLISH_AHEAD", "1h")]).await;
    let leaked = app.token(OPERATOR, OPERATOR_SECRET).await;
    app.service.database.execute_raw("DELETE FROM signing_keys").await;
    testkit::eventually("tokens of the leaked key are rejected", TIMEOUT, async || {
        let (status, _) = app.call_as(&leaked, Method::GET, "/v1/merchants", None).await;
        (status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    // Auth created another key, which signs at once.
    let token = app.token(OPERATOR, OPERATOR_SECRET).await;
    let keys = app.public_keys().await;
    let ids: Vec<_> = keys.iter().map(|key| key["kid"].as_str().unwrap()).collect();
    assert_eq!(ids, [key_id(&token)]);
    assert_ne!(key_id(&token), key_id(&leaked));
    let (status, _) = app.call_as(&token, Method::GET, "/v1/merchants", None).await;
    assert_eq!(status, StatusCode::OK);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_published_before_it_signs() {
    let app = TestApp::start_with(&[("KEYS__PUBLISH_AHEAD", "1h")]).await;
    let before = app.token(OPERATOR, OPERATOR_SECRET).await;
    let (status, _) = app.call(Method::POST, "/v1/signing_keys/rotate", None).await;
    assert_eq!(status, StatusCode::CREATED);
    assert_eq!(app.public_keys().await.len(), 2);
    let after = app.token(OPERATOR, OPERATOR_SECRET).await;
    assert_eq!(key_id(&after), key_id(&before));
    app.stop().await;
}
