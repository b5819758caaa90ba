//! Tests of clients and their secrets.

use chrono::TimeDelta;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::{OPERATOR, OPERATOR_SECRET, TestApp};
use crate::person::TestClock;

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_keeps_the_previous_secret_and_expires_older_ones() {
    let app = TestApp::start().await;
    let (id, first) = app.create_client(None, &["warehouse"]).await;
    let path = format!("/v1/clients/{id}/rotate");
    let rotate = async || {
        let (status, body) = app.call(Method::POST, &path, Some(json!({}))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body["client_secret"].as_str().unwrap().to_owned()
    };
    let second = rotate().await;
    app.token(&id, &first).await;
    app.token(&id, &second).await;
    let third = rotate().await;
    assert_eq!(app.request_token(&id, &first).await.0, StatusCode::UNAUTHORIZED);
    app.token(&id, &second).await;
    app.token(&id, &third).await;
    let no_overlap = Some(json!({"overlap_seconds": 0}));
    let (_, body) = app.call(Method::POST, &path, no_overlap).await;
    for old in [&second, &third] {
        assert_eq!(app.request_token(&id, old).await.0, StatusCode::UNAUTHORIZED);
    }
    app.token(&id, body["client_secret"].as_str().unwrap()).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_the_first_operator_cannot_be_rotated() {
    let app = TestApp::start().await;
    let path = format!("/v1/clients/{OPERATOR}/rotate");
    let (status, body) = app.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(body.to_string().contains("bootstrap.client_secret"), "{body}");
    assert_eq!(app.request_token(OPERATOR, OPERATOR_SECRET).await.0, StatusCode::OK);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_clients_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let create = async |merchant: &str, scope: &str| {
        let body = json!({"name": "x", "scopes": [scope], "merchant": merchant});
        app.call(Method::POST, "/v1/clients", Some(body)).await.0
    };
    assert_eq!(create("nobody", "orders").await, StatusCode::NOT_FOUND);
    assert_eq!(create("acme", "operator").await, StatusCode::UNPROCESSABLE_ENTITY);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_is_stored_at_most_once_a_minute() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(Some("acme"), &["orders"]).await;
    let last_used_at = async || -> Value {
        let (_, page) = app.call(Method::GET, "/v1/clients?merchant=acme", None).await;
        page["clients"][0]["last_used_at"].clone()
    };
    assert_eq!(last_used_at().await, Value::Null);
    assert_eq!(app.request_token(&id, "wrong-secret").await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(last_used_at().await, Value::Null);
    app.token(&id, &secret).await;
    let first = last_used_at().await;
    assert!(first.is_string(), "{first}");
    app.token(&id, &secret).await;
    assert_eq!(last_used_at().await, first);
    clock.advance(TimeDelta::seconds(59));
    app.token(&id, &secret).await;
    assert_eq!(last_used_at().await, first);
    clock.advance(TimeDelta::seconds(1));
    app.token(&id, &secret).await;
    let second = last_used_at().await;
    assert!(second.as_str() > first.as_str(), "{first} {second}");
    app.stop().await;
}
