//! Tests of revoking and introspecting tokens and clients.

use chrono::TimeDelta;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    app::{OPERATOR, OPERATOR_SECRET, TIMEOUT, TestApp, form, send},
    merchants,
    person::TestClock,
};

const QUEUE: &str = "order-intake.token.revoked.v1";

fn token_request(
    app: &TestApp,
    path: &str,
    (id, secret): (&str, &str),
    token: &str,
) -> RequestBuilder {
    let fields = format!("token={token}&client_id={id}&client_secret={secret}");
    form(app.request(Method::POST, path), &fields)
}

async fn is_active(app: &TestApp, token: &str) -> bool {
    let credentials = (OPERATOR, OPERATOR_SECRET);
    let (status, body) = send(token_request(app, "/oauth/introspect", credentials, token)).await;
    assert_eq!(status, StatusCode::OK);
    body["active"].as_bool().unwrap()
}

/// Waits for the first published revocation.
async fn published_revocation(app: &TestApp) -> Value {
    eventually("the revocation is published", TIMEOUT, async || {
        app.events(QUEUE).await.into_iter().next()
    })
    .await
}

fn expires_at(revocation: &Value) -> platform::Timestamp {
    revocation["expires_at"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_client_is_rejected_by_all_replicas_and_after_a_restart() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(Some("acme"), &["orders"]).await;
    let token = app.token(&id, &secret).await;
    let replica = app.start_replica().await;
    let status_at_replica = async || {
        let request =
            app.http.get(format!("{}/v1/merchants/acme", replica.url)).bearer_auth(&token);
        request.send().await.unwrap().status()
    };
    assert_eq!(status_at_replica().await, StatusCode::OK);
    let (status, body) = app.call(Method::POST, &format!("/v1/clients/{id}/revoke"), None).await;
    assert_eq!((status, body["revoked_at"].is_string()), (StatusCode::OK, true));
    assert_eq!(
        app.call_as(&token, Method::GET, "/v1/merchants/acme", None).await.0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(app.request_token(&id, &secret).await.0, StatusCode::UNAUTHORIZED);
    eventually("the other replica rejects the token", TIMEOUT, async || {
        (status_at_replica().await == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
    let event = published_revocation(&app).await;
    assert_eq!((&event["kind"], &event["id"]), (&json!("client"), &json!(id)));
    assert!(replica.stop().await);

    let app = app.restart().await;
    let (status, _) = app.call_as(&token, Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_accepted_before_the_revocations_are_read() {
    let app = TestApp::alone().await;
    let token = app.operator_token.clone();
    let sql = "ALTER TABLE revocations RENAME TO hidden_revocations";
    app.service.database.execute_raw(sql).await;
    let replica = app.launch_replica().await;
    let readiness = async || {
        let response = app.http.get(format!("{}/readyz", replica.url)).send().await.unwrap();
        response.json::<Value>().await.unwrap()
    };
    eventually("the replica has the keys", TIMEOUT, async || {
        let parts = readiness().await["parts"].clone();
        assert_eq!(parts["revocations"], "not loaded yet");
        (parts["keys"] == "ok").then_some(())
    })
    .await;
    let status_at_replica = async || {
        let request = app.http.get(format!("{}/v1/merchants", replica.url)).bearer_auth(&token);
        request.send().await.unwrap().status()
    };
    assert_eq!(status_at_replica().await, StatusCode::SERVICE_UNAVAILABLE);
    let sql = "ALTER TABLE hidden_revocations RENAME TO revocations";
    app.service.database.execute_raw(sql).await;
    eventually("the replica accepts the token", TIMEOUT, async || {
        (status_at_replica().await == StatusCode::OK).then_some(())
    })
    .await;
    assert!(replica.stop().await);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_revocation_is_published_again_and_audited_once() {
    let app = TestApp::alone().await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let token = app.token(&id, &secret).await;
    for _ in 0..2 {
        let (status, _) = send(token_request(&app, "/oauth/revoke", (&id, &secret), &token)).await;
        assert_eq!(status, StatusCode::OK);
    }
    for _ in 0..2 {
        app.call(Method::POST, &format!("/v1/clients/{id}/revoke"), None).await;
    }
    let events = eventually("each revocation is published twice", TIMEOUT, async || {
        let events = app.events(QUEUE).await;
        (events.len() == 4).then_some(events)
    })
    .await;
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["token", "token", "client", "client"]);
    assert!(!is_active(&app, &token).await);
    let mut records = app.audit_records().await;
    records.retain(|record| record["action"] == "token.revoked");
    assert_eq!((records.len(), &records[0]["actor"]), (1, &json!(id)));
    assert_eq!(records[0]["detail"]["client_id"], json!(id));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revocation_of_a_token_expires_with_the_token() {
    let app = TestApp::start_with(&[("TOKENS__LIFETIME", "1h")]).await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let token = app.token(&id, &secret).await;
    let (_, claims) = send(token_request(&app, "/oauth/introspect", (&id, &secret), &token)).await;
    send(token_request(&app, "/oauth/revoke", (&id, &secret), &token)).await;
    let revocation = published_revocation(&app).await;
    assert_eq!(expires_at(&revocation).timestamp(), claims["exp"].as_i64().unwrap());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revocation_of_a_client_outlives_its_longest_token() {
    let app = TestApp::start_with(&[("TOKENS__LIFETIME", "1h")]).await;
    let (id, _) = app.create_client(None, &["warehouse"]).await;
    let longest_token_expires_at = platform::Clock::system().now() + TimeDelta::seconds(90_000);
    app.call(Method::POST, &format!("/v1/clients/{id}/revoke"), None).await;
    assert!(expires_at(&published_revocation(&app).await) > longest_token_expires_at);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_audited_is_rolled_back() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let token = app.token(&id, &secret).await;
    let database = &app.service.database;
    database
        .execute_raw("ALTER TABLE audit_records ADD CONSTRAINT failing CHECK (false) NOT VALID")
        .await;
    let failed = StatusCode::INTERNAL_SERVER_ERROR;
    assert_eq!(app.call(Method::POST, "/v1/signing_keys/rotate", None).await.0, failed);
    assert_eq!(app.call(Method::POST, "/v1/merchants/republish", None).await.0, failed);
    assert_eq!(send(token_request(&app, "/oauth/revoke", (&id, &secret), &token)).await.0, failed);
    database.execute_raw("ALTER TABLE audit_records DROP CONSTRAINT failing").await;
    assert!(is_active(&app, &token).await);
    assert_eq!(app.public_keys().await.len(), 1);

    let (_, republished) = app.call(Method::POST, "/v1/merchants/republish", None).await;
    assert_eq!(republished["merchants"], 1);
    let change = json!({"return_window_days": 60});
    app.call(Method::PATCH, "/v1/merchants/acme", Some(change)).await;
    eventually("three versions are published", TIMEOUT, async || {
        let events = app.events(merchants::QUEUE).await;
        let version = |event: &Value| event["merchant"]["version"].as_i64().unwrap();
        let versions: Vec<_> = events.iter().map(version).collect();
        (versions.len() == 3).then(|| assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}"))
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_revoke_only_its_own_tokens() {
    let app = TestApp::start().await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let (other_id, other_secret) = app.create_client(None, &["carrier"]).await;
    let token = app.token(&id, &secret).await;
    assert!(is_active(&app, &token).await);
    let revoke = async |credentials, token: &str| {
        send(token_request(&app, "/oauth/revoke", credentials, token)).await.0
    };
    assert_eq!(revoke((&other_id, &other_secret), &token).await, StatusCode::OK);
    assert!(is_active(&app, &token).await, "another client revoked the token");
    assert_eq!(revoke((&id, "wrong"), &token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(revoke((&id, &secret), "not a token").await, StatusCode::OK);
    assert_eq!(revoke((&id, &secret), &token).await, StatusCode::OK);
    assert!(!is_active(&app, &token).await);
    assert!(
        is_active(&app, &app.token(&id, &secret).await).await,
        "the client can still get tokens"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_introspect_only_its_own_tokens() {
    let app = TestApp::start().await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let token = app.token(&id, &secret).await;
    let (_, own) = send(token_request(&app, "/oauth/introspect", (&id, &secret), &token)).await;
    assert_eq!(
        (&own["active"], &own["client_id"], &own["scope"]),
        (&json!(true), &json!(id), &json!("warehouse"))
    );
    let (_, other) =
        send(token_request(&app, "/oauth/introspect", (&id, &secret), &app.operator_token)).await;
    assert_eq!(other, json!({"active": false}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_revoke_a_limited_number_of_tokens() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    let token = app.token(&id, &secret).await;
    let revoke = async |credentials: (&str, &str)| {
        send(token_request(&app, "/oauth/revoke", credentials, &token)).await.0
    };
    for _ in 0..300 {
        assert_eq!(revoke((&id, &secret)).await, StatusCode::OK);
    }
    assert_eq!(revoke((&id, &secret)).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(revoke((OPERATOR, OPERATOR_SECRET)).await, StatusCode::OK, "another client");
    clock.advance(TimeDelta::seconds(61));
    assert_eq!(revoke((&id, &secret)).await, StatusCode::OK);
    app.stop().await;
}
