//! Tests of clients and their secrets.

use chrono::TimeDelta;
use diesel::sql_query;
use diesel_async::RunQueryDsl as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;

use crate::app::{OPERATOR, OPERATOR_SECRET, TIMEOUT, TestApp};
use crate::person::TestClock;

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_keeps_the_previous_secret_and_expires_older_ones() {
    let app = TestApp::start().await;
    let (id, first) = app.create_client(None, &["warehouse"]).await;
    let path = format!("/v1/clients/{id}/rotate");
    let rotate = async |body: Value| {
        let (status, body) = app.call(Method::POST, &path, Some(body)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        assert!(body["previous_secret_expires_at"].is_string(), "{body}");
        body["client_secret"].as_str().unwrap().to_owned()
    };
    let second = rotate(json!({})).await;
    app.token(&id, &second).await;
    // The first secret was never used, so it may end.
    // The first rotation keeps the first secret valid for a day.
    let path = format!("/v1/clients/{id}/rotate");
    let (status, body) = app.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!((status, &body["code"]), (StatusCode::CONFLICT, &json!("secret_in_use")), "{body}");
    app.token(&id, &first).await;
    let third = rotate(json!({"force": true})).await;
    assert_eq!(app.request_token(&id, &first).await.0, StatusCode::UNAUTHORIZED);
    app.token(&id, &second).await;
    app.token(&id, &third).await;
    let newest = rotate(json!({"overlap_seconds": 0, "force": true})).await;
    for old in [&second, &third] {
        assert_eq!(app.request_token(&id, old).await.0, StatusCode::UNAUTHORIZED);
    }
    app.token(&id, &newest).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_is_the_same_client() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let bob = app.person("bob@acme.example", "merchant-admin", Some("acme")).await;
    let bob = app.session_token(&bob.session).await;
    let ada = app.person("ada@acme.example", "merchant-admin", Some("acme")).await;
    let ada = app.session_token(&ada.session).await;
    let body = json!({"name": "Acme shop", "scopes": ["orders"]});
    let create = async |token: &str, body: &Value| {
        app.call_with_key(token, "1", "/v1/clients", body.clone()).await
    };
    let (first, second) = tokio::join!(create(&ada, &body), create(&ada, &body));
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    assert_eq!(first, second);
    let id = first.1["client_id"].as_str().unwrap().to_owned();
    let secret = first.1["client_secret"].as_str().unwrap();
    app.token(&id, secret).await;
    let listed = async || app.call_as(&ada, Method::GET, "/v1/clients", None).await.1;
    assert_eq!(listed().await["clients"].as_array().unwrap().len(), 1);
    // Neither other values nor another person get the secret.
    let other = json!({"name": "Acme app", "scopes": ["orders"]});
    for (token, body) in [(&ada, &other), (&bob, &body)] {
        let (status, response) = create(token, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{response}");
    }
    assert_eq!(listed().await["clients"].as_array().unwrap().len(), 1);
    let mut conn = app.service.database.pool().get().await.unwrap();
    let stored: Vec<Text> =
        sql_query("SELECT response AS text FROM idempotency_keys").load(&mut conn).await.unwrap();
    assert!(stored.iter().any(|row| row.text.contains("Acme shop")));
    assert!(stored.iter().all(|row| !row.text.contains(secret)), "the secret is encrypted");
}

#[derive(diesel::QueryableByName)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Text)]
    text: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_is_the_same_rotation() {
    let app = TestApp::start().await;
    let (id, first) = app.create_client(None, &["warehouse"]).await;
    let path = format!("/v1/clients/{id}/rotate");
    let key = app.service.own("rotation");
    let rotate =
        async |body: Value| app.call_with_key(&app.operator_token, &key, &path, body).await;
    let body = json!({"overlap_seconds": 3600});
    let (status, rotated) = rotate(body.clone()).await;
    assert_eq!(status, StatusCode::OK, "{rotated}");
    assert_eq!(rotate(body).await, (status, rotated.clone()));
    app.token(&id, &first).await;
    app.token(&id, rotated["client_secret"].as_str().unwrap()).await;
    let (status, _) = rotate(json!({"overlap_seconds": 0, "force": true})).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_use_ends_only_with_force() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    app.create_merchant("acme").await;
    let (id, first) = app.create_client(Some("acme"), &["orders"]).await;
    let (unused, secret) = app.create_client(Some("acme"), &["orders"]).await;
    app.token(&unused, &secret).await;
    let (manager_id, manager_secret) = app.create_client(Some("acme"), &["manage"]).await;
    let manager = app.token(&manager_id, &manager_secret).await;
    let path = format!("/v1/clients/{id}/rotate");
    let rotate = async |body: Value| app.call_as(&manager, Method::POST, &path, Some(body)).await;
    app.token(&id, &first).await;
    let at_once = json!({"overlap_seconds": 0});
    let (status, body) = rotate(at_once.clone()).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    assert!(body["message"].as_str().unwrap().contains("is still in use"), "{body}");
    assert_eq!(body["code"], "secret_in_use", "the console offers force for this code only");
    let (status, body) = rotate(json!({"overlap_seconds": 3600})).await;
    assert_eq!(status, StatusCode::OK, "the first secret ends after the overlap: {body}");
    assert_eq!(app.request_token(&id, &first).await.0, StatusCode::OK);
    assert_eq!(rotate(json!({})).await.0, StatusCode::CONFLICT, "the first would end now");
    assert_eq!(rotate(json!({"force": true})).await.0, StatusCode::OK);
    assert_eq!(app.request_token(&id, &first).await.0, StatusCode::UNAUTHORIZED);

    clock.advance(TimeDelta::hours(26));
    let path = format!("/v1/clients/{unused}/rotate");
    let manager = app.token(&manager_id, &manager_secret).await;
    let (status, body) = app.call_as(&manager, Method::POST, &path, Some(at_once)).await;
    assert_eq!(status, StatusCode::OK, "it was not used for 26 hours: {body}");
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
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_the_portal_comes_from_the_settings() {
    let secret = "a-secret-for-the-returns-portal";
    let app = TestApp::start_with(&[
        ("BOOTSTRAP__PORTAL_CLIENT_ID", "portal"),
        ("BOOTSTRAP__PORTAL_CLIENT_SECRET", secret),
    ])
    .await;
    let body = eventually("the portal gets a token", TIMEOUT, async || {
        let (status, body) = app.request_token("portal", secret).await;
        (status == StatusCode::OK).then_some(body)
    })
    .await;
    assert_eq!(body["scope"], "shopper");
    let (status, body) = app.call(Method::POST, "/v1/clients/portal/rotate", Some(json!({}))).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    assert!(body.to_string().contains("bootstrap.portal_client_secret"), "{body}");
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
