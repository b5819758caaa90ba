//! Tests of the own password and the own recovery codes.

use chrono::TimeDelta;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    app::{TestApp, text},
    person::{PASSWORD, TestClock, code_at, invalid_fields},
};

const NEW_PASSWORD: &str = "another long password";

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_ends_all_other_sessions() {
    let app = TestApp::start().await;
    let ada = app.person("ada@example.com", "support", None).await;
    let (_, other) = app.sign_in(&ada.email, PASSWORD, None).await;
    let token = app.session_token(&ada.session).await;
    let change = async |current: &str, new: &str| {
        let body = Some(json!({"current_password": current, "new_password": new}));
        app.call_as(&token, Method::POST, "/v1/password", body).await
    };
    for (current, new, field) in [
        ("wrong", NEW_PASSWORD, "$.current_password"),
        (PASSWORD, "short", "$.new_password"),
        (PASSWORD, "password123", "$.new_password"),
        (PASSWORD, "ADA@example.com", "$.new_password"),
    ] {
        let (status, body) = change(current, new).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(invalid_fields(&body), [field]);
    }
    let all = json!({"current_password": "wrong", "new_password": "short",
        "new_password_again": "other"});
    let (_, body) = app.call_as(&token, Method::POST, "/v1/password", Some(all)).await;
    let fields = ["$.current_password", "$.new_password", "$.new_password_again"];
    assert_eq!(invalid_fields(&body), fields);
    let (status, body) = change(PASSWORD, NEW_PASSWORD).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{body}");
    assert!(app.is_signed_in(&ada.session).await);
    assert!(!app.is_signed_in(&text(&other, "session")).await);
    assert_eq!(app.sign_in(&ada.email, PASSWORD, None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(app.sign_in(&ada.email, NEW_PASSWORD, None).await.0, StatusCode::CREATED);
    let audited = app.audited().await;
    assert!(audited.contains(&("password.changed".to_owned(), ada.email)), "{audited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_session_cannot_guess_the_password() {
    let app = TestApp::start_with(&[("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3")]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    let token = app.session_token(&ada.session).await;
    let replace = async |password: &str| {
        let body = Some(json!({"password": password}));
        app.call_as(&token, Method::POST, "/v1/recovery_codes", body).await.0
    };
    for _ in 0..4 {
        assert_eq!(replace("guess").await, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert_eq!(replace(PASSWORD).await, StatusCode::TOO_MANY_REQUESTS);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_recovery_codes_replace_the_old_ones() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    let token = app.session_token(&ada.session).await;
    let replace = async |password: &str| {
        let code = code_at(&ada.secret, app.clock.now());
        let body = Some(json!({"password": password, "totp_code": code}));
        app.call_as(&token, Method::POST, "/v1/recovery_codes", body).await
    };
    clock.advance(TimeDelta::seconds(30));
    let (status, body) = replace("wrong").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(invalid_fields(&body), ["$.password"]);
    let (status, replaced) = replace(PASSWORD).await;
    assert_eq!(status, StatusCode::CREATED, "{replaced}");
    let codes = replaced["recovery_codes"].as_array().unwrap();
    assert_eq!(codes.len(), 10);
    let sign_in = async |code: &str| app.sign_in(&ada.email, PASSWORD, Some(code)).await.0;
    assert_eq!(sign_in(&ada.recovery_codes[0]).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(codes[0].as_str().unwrap()).await, StatusCode::CREATED);
    clock.advance(TimeDelta::seconds(30));
    assert_eq!(sign_in(&code_at(&ada.secret, app.clock.now())).await, StatusCode::CREATED);

    let bea = app.person("bea@example.com", "support", None).await;
    let token = app.session_token(&bea.session).await;
    let body = Some(json!({"password": PASSWORD}));
    let (status, body) = app.call_as(&token, Method::POST, "/v1/recovery_codes", body).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_has_the_same_recovery_codes() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    let token = app.session_token(&ada.session).await;
    clock.advance(TimeDelta::seconds(30));
    let code = code_at(&ada.secret, app.clock.now());
    let body = json!({"password": PASSWORD, "totp_code": code});
    let replace =
        async |key: &str| app.call_with_key(&token, key, "/v1/recovery_codes", body.clone()).await;
    let first = replace("first").await;
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    // The code was used up by the first request.
    assert_eq!(replace("first").await, first);
    assert_eq!(replace("second").await.0, StatusCode::UNPROCESSABLE_ENTITY);
    // Another session of the person needs a proof of its own.
    clock.advance(TimeDelta::seconds(30));
    let code = code_at(&ada.secret, app.clock.now());
    let (_, other) = app.sign_in(&ada.email, PASSWORD, Some(&code)).await;
    let other = app.session_token(&text(&other, "session")).await;
    let path = "/v1/recovery_codes";
    let (status, refused) = app.call_with_key(&other, "first", path, body.clone()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let records = format!("{:?}", app.audit_records().await);
    assert_eq!(records.matches("recovery_codes.replaced").count(), 1, "{records}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_faults_of_a_form_are_reported_together() {
    let app = TestApp::start().await;
    let ada = app.person("ada@example.com", "operator", None).await;
    let token = app.session_token(&ada.session).await;
    let path = "/v1/password";
    let body = json!({"current_password": PASSWORD, "new_password": "password123"});
    let (status, body) = app.call_as(&token, Method::POST, path, Some(body)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    assert_eq!(invalid_fields(&body), ["$.new_password", "$.totp_code"]);
}
