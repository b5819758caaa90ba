//! Tests of the invitations and credentials of people whose role or merchant changes.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    app::{TestApp, text},
    person::{PASSWORD, TestPerson, code_at},
};

const EMAIL: &str = "joe@acme.example";

async fn start() -> TestApp {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    app
}

/// Changes the person as an operator.
async fn change(app: &TestApp, change: Value) -> Value {
    let path = format!("/v1/people/{EMAIL}");
    let (status, person) = app.call(Method::PATCH, &path, Some(change)).await;
    assert_eq!(status, StatusCode::OK, "{person}");
    person
}

async fn assert_void(app: &TestApp, token: &str) {
    let (status, shown) = app.post("/v1/invitations/show", json!({"token": token})).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{shown}");
    let body = json!({"token": token, "password": PASSWORD});
    let (status, accepted) = app.post("/v1/invitations/accept", body).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{accepted}");
}

/// The rights that the manager of a merchant must not get with a link.
fn rights() -> [Value; 3] {
    [
        json!({"role": "operator"}),
        json!({"role": "support"}),
        json!({"role": "merchant-admin", "merchant": "rival"}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn new_rights_end_the_link_that_the_manager_of_a_merchant_has() {
    for rights in rights() {
        let app = start().await;
        let admin = app.person("admin@acme.example", "merchant-admin", Some("acme")).await;
        let token = app.session_token(&admin.session).await;
        let body = json!({"email": EMAIL, "role": "merchant-viewer"});
        let (_, invited) = app.call_as(&token, Method::POST, "/v1/people", Some(body)).await;
        let person = change(&app, rights.clone()).await;
        assert_void(&app, &text(&invited["invitation"], "token")).await;
        let joe = app.accept(&text(&person["invitation"], "token")).await;
        let (_, issued) = app.request_session_token(&joe.session).await;
        assert_eq!(issued["person"]["role"], rights["role"]);
    }
}

/// The status of a sign-in of a person with TOTP.
async fn sign_in(app: &TestApp, person: &TestPerson, code: &str) -> StatusCode {
    app.sign_in(&person.email, PASSWORD, Some(code)).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_leaves_a_merchant_sets_new_credentials() {
    for rights in rights() {
        let app = start().await;
        let joe = app.person_with_totp(EMAIL, "merchant-viewer", Some("acme")).await;
        let renew = format!("/v1/people/{EMAIL}/invitation");
        let (_, renewed) = app.call(Method::POST, &renew, None).await;
        let person = change(&app, rights).await;
        assert_eq!(
            (&person["state"], &person["has_password"], &person["totp"]),
            (&json!("invited"), &json!(false), &json!(false))
        );
        assert_void(&app, &text(&renewed["invitation"], "token")).await;
        assert!(!app.is_signed_in(&joe.session).await);
        let refused = StatusCode::UNAUTHORIZED;
        assert_eq!(sign_in(&app, &joe, &code_at(&joe.secret, app.clock.now())).await, refused);
        assert_eq!(sign_in(&app, &joe, &joe.recovery_codes[0]).await, refused);
        let audited = app.audited().await;
        let actions: Vec<_> = audited.iter().map(|(action, _)| action.as_str()).collect();
        let end = actions.len() - 5..;
        assert!(actions[end.clone()].contains(&"person.updated"), "{actions:?}");
        assert!(actions[end].contains(&"person.invitation_renewed"), "{actions:?}");
        let joe = app.accept(&text(&person["invitation"], "token")).await;
        assert!(app.is_signed_in(&joe.session).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_role_in_the_merchant_replaces_only_an_open_link() {
    let app = start().await;
    let token = app.invite(EMAIL, "merchant-viewer", Some("acme")).await;
    let person = change(&app, json!({"role": "merchant-admin"})).await;
    assert_void(&app, &token).await;
    app.accept(&text(&person["invitation"], "token")).await;
    let person = change(&app, json!({"role": "merchant-viewer"})).await;
    assert_eq!((&person["invitation"], &person["has_password"]), (&Value::Null, &json!(true)));
    assert_eq!(app.sign_in(EMAIL, PASSWORD, None).await.0, StatusCode::CREATED);
    let person = change(&app, json!({"name": "Joe"})).await;
    assert_eq!(person["invitation"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_person_who_leaves_a_merchant_is_invited_when_enabled() {
    let app = start().await;
    app.person(EMAIL, "merchant-viewer", Some("acme")).await;
    let path = |action: &str| format!("/v1/people/{EMAIL}/{action}");
    app.call(Method::POST, &path("disable"), None).await;
    let person = change(&app, json!({"role": "support"})).await;
    assert_eq!((&person["state"], &person["invitation"]), (&json!("disabled"), &Value::Null));
    let (_, person) = app.call(Method::POST, &path("enable"), None).await;
    assert_eq!((&person["state"], &person["has_password"]), (&json!("invited"), &json!(false)));
    assert_eq!(app.sign_in(EMAIL, PASSWORD, None).await.0, StatusCode::UNAUTHORIZED);
}
