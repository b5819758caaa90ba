//! Tests of clients and their secrets.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::app::{OPERATOR, OPERATOR_SECRET, TestApp};

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
