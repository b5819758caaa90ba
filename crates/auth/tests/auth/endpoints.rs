//! Tests of endpoints and their signing secrets.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::app::TestApp;
use crate::merchants::published_version;

const ENDPOINT: &str = "/v1/merchants/acme/endpoints/rma";
const VARIANTS: &str = "/v1/merchants/acme/endpoints/exchange-variants";

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_secrets_are_returned_once_stored_encrypted_and_rotated() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let endpoint = json!({"url": "https://acme.example/rmas", "headers": {"X-Shop": "1"},
        "authentication": {"kind": "basic", "username": "u", "password": "open-sesame"}, "timeout_ms": 5000});
    let (status, created) = app.call(Method::PUT, ENDPOINT, Some(endpoint.clone())).await;
    assert_eq!(status, StatusCode::OK, "{created}");
    let secret = created["signing_secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(created["endpoint"]["authentication"]["password"], "********");
    let (_, replaced) = app.call(Method::PUT, ENDPOINT, Some(endpoint)).await;
    assert_eq!(replaced.get("signing_secret"), None);

    let overlap = Some(json!({"overlap_seconds": 60}));
    let (_, rotated) = app.call(Method::POST, &format!("{ENDPOINT}/rotate_secret"), overlap).await;
    assert_ne!(rotated["signing_secret"].as_str().unwrap(), secret);
    let secrets = rotated["endpoint"]["signing_secrets"].as_array().unwrap();
    assert_eq!(secrets.len(), 2);
    assert!(secrets[0]["expires_at"].is_null() && secrets[1]["expires_at"].is_string());

    let (_, paused) = app.call(Method::POST, &format!("{ENDPOINT}/pause"), None).await;
    assert_eq!(paused["endpoints"]["rma"]["paused"], true);
    let (_, resumed) = app.call(Method::POST, &format!("{ENDPOINT}/resume"), None).await;
    assert_eq!(resumed["endpoints"]["rma"]["paused"], false);

    let event = published_version(&app, &resumed["version"]).await.to_string();
    assert!(!event.contains("open-sesame") && !event.contains("whsec_"), "a secret is in an event");
    let records = format!("{:?}", app.audit_records().await);
    assert!(!records.contains("open-sesame"), "a secret is in the audit log");

    assert_eq!(app.call(Method::DELETE, ENDPOINT, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(app.call(Method::DELETE, ENDPOINT, None).await.0, StatusCode::NOT_FOUND);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_endpoints_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let (status, body) = app.call(Method::PUT, ENDPOINT, Some(json!({}))).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    let no_placeholder = json!({"url": "https://acme.example/variants"});
    let (status, body) = app.call(Method::PUT, VARIANTS, Some(no_placeholder)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let valid = json!({"url": "https://acme.example/sku/{variant_identifier}/variants"});
    let (status, body) = app.call(Method::PUT, VARIANTS, Some(valid)).await;
    assert_eq!((status, body.get("signing_secret")), (StatusCode::OK, None), "{body}");
    let rotate = format!("{VARIANTS}/rotate_secret");
    let (status, body) = app.call(Method::POST, &rotate, Some(json!({}))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let unknown_interface = "/v1/merchants/acme/endpoints/telegram";
    let (status, _) = app.call(Method::PUT, unknown_interface, Some(json!({}))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    app.stop().await;
}
