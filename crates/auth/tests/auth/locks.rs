//! Requests about a locked row leave connections to others.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::check_requests_about_locked_rows;

use crate::app::TestApp;

/// Sends requests about rows that another transaction has locked, and a change of another merchant meanwhile.
async fn check(app: &TestApp, lock: &str, method: Method, path: &str, body: Value) {
    let request = async || app.call(method.clone(), path, Some(body.clone())).await;
    let other = async || {
        let change = json!({"name": "The other company"});
        let (status, changed) = app.call(Method::PATCH, "/v1/merchants/rival", Some(change)).await;
        assert_eq!(status, StatusCode::OK, "{changed}");
    };
    let database = &app.service.database;
    for (status, response) in check_requests_about_locked_rows(database, lock, request, other).await
    {
        // On a slow machine the time of a request can be over before the lock is released.
        let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
        assert!(status.is_success() || is_limited, "{path}: {status} {response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_merchant_leave_connections_to_others() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    let lock = "SELECT FROM merchants WHERE identifier LIKE 'acme%' FOR UPDATE";
    let change = json!({"return_window_days": 60});
    check(&app, lock, Method::PATCH, "/v1/merchants/acme", change).await;
    let endpoint = json!({"url": "https://acme.example/rmas"});
    check(&app, lock, Method::PUT, "/v1/merchants/acme/endpoints/rma", endpoint).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_client_leave_connections_to_others() {
    let app = TestApp::alone().await;
    app.create_merchant("rival").await;
    let (client, _) = app.create_client(None, &["warehouse"]).await;
    let lock = format!("SELECT FROM clients WHERE id = '{client}' FOR UPDATE");
    check(&app, &lock, Method::POST, &format!("/v1/clients/{client}/revoke"), json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_person_leave_connections_to_others() {
    let app = TestApp::alone().await;
    app.create_merchant("rival").await;
    let person = json!({"email": "jo@example.com", "name": "Jo", "role": "support"});
    let (status, invited) = app.call(Method::POST, "/v1/people", Some(person)).await;
    assert_eq!(status, StatusCode::CREATED, "{invited}");
    let lock = "SELECT FROM people WHERE email LIKE 'jo@%' FOR UPDATE";
    let change = json!({"name": "Jo B."});
    check(&app, lock, Method::PATCH, "/v1/people/jo@example.com", change).await;
    check(&app, lock, Method::POST, "/v1/people/jo@example.com/disable", json!({})).await;
}
