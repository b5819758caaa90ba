//! Tests of sessions: their tokens, their end and their list.

use chrono::TimeDelta;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    app::{TIMEOUT, TestApp, send, text},
    person::{PASSWORD, TestClock},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_it_is_idle_for_30_minutes() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    for _ in 0..3 {
        clock.advance(TimeDelta::minutes(29));
        assert!(app.is_signed_in(&ada.session).await);
    }
    clock.advance(TimeDelta::minutes(30));
    assert!(!app.is_signed_in(&ada.session).await);
    let (_, list) = app.call(Method::GET, "/v1/sessions?person=ada@example.com", None).await;
    assert_eq!(list, json!({"sessions": []}));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_after_12_hours() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    for _ in 0..35 {
        clock.advance(TimeDelta::minutes(20));
        assert!(app.is_signed_in(&ada.session).await);
    }
    clock.advance(TimeDelta::minutes(19));
    let (_, issued) = app.request_session_token(&ada.session).await;
    assert_eq!(issued["expires_in"], 60, "a token does not outlive its session");
    clock.advance(TimeDelta::minutes(1));
    let (status, body) = app.request_session_token(&ada.session).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{body}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_reused_until_it_has_five_minutes_left() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    let first = app.session_token(&ada.session).await;
    clock.advance(TimeDelta::seconds(299));
    let (_, reused) = app.request_session_token(&ada.session).await;
    assert_eq!(
        (text(&reused, "access_token"), &reused["expires_in"]),
        (first.clone(), &json!(301))
    );
    clock.advance(TimeDelta::seconds(1));
    let (_, renewed) = app.request_session_token(&ada.session).await;
    assert_ne!(text(&renewed, "access_token"), first);
    assert_eq!(renewed["expires_in"], 600);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_is_written_once_a_minute() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    let last_used_at = async || {
        let token = app.session_token(&ada.session).await;
        let (_, list) = app.call_as(&token, Method::GET, "/v1/sessions", None).await;
        list["sessions"][0]["last_used_at"]
            .as_str()
            .unwrap()
            .parse::<platform::Timestamp>()
            .unwrap()
    };
    let created_at = app.clock.now();
    clock.advance(TimeDelta::seconds(59));
    assert_eq!(last_used_at().await, created_at);
    clock.advance(TimeDelta::seconds(1));
    assert_eq!(last_used_at().await, app.clock.now());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_list_and_end_their_sessions() {
    let app = TestApp::start_with(&[("HTTP__TRUSTED_PROXIES", "127.0.0.1")]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    let body = json!({"email": ada.email, "password": PASSWORD, "user_agent": "<b>Firefox</b>"});
    let request = app.request(Method::POST, "/v1/sessions").header("x-forwarded-for", "192.0.2.7");
    let (_, second) = send(request.json(&body)).await;
    let second = text(&second, "session");
    let token = app.session_token(&ada.session).await;
    let list = async || {
        let (status, list) = app.call_as(&token, Method::GET, "/v1/sessions", None).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        list["sessions"].as_array().unwrap().clone()
    };
    let sessions = list().await;
    let shown = |session: &Value| {
        (session["address"].clone(), session["user_agent"].clone(), session["current"].clone())
    };
    assert_eq!(
        sessions.iter().map(shown).collect::<Vec<_>>(),
        [
            (json!("192.0.2.7"), json!("<b>Firefox</b>"), json!(false)),
            (json!("127.0.0.1"), Value::Null, json!(true)),
        ]
    );
    let second_token = app.session_token(&second).await;
    let path = format!("/v1/sessions/{}", text(&sessions[0], "id"));
    let end = async || app.call_as(&token, Method::DELETE, &path, None).await.0;
    assert_eq!(end().await, StatusCode::NO_CONTENT);
    assert_eq!(end().await, StatusCode::NOT_FOUND);
    assert!(!app.is_signed_in(&second).await);
    assert_eq!(list().await.len(), 1);
    rejected(&app, &second_token).await;

    let (status, _) = app.call_as(&token, Method::DELETE, "/v1/sessions", None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(!app.is_signed_in(&ada.session).await);
    rejected(&app, &token).await;
    app.stop().await;
}

/// Waits until a token is rejected.
async fn rejected(app: &TestApp, token: &str) {
    eventually("the token is rejected", TIMEOUT, async || {
        let (status, _) = app.call_as(token, Method::GET, "/v1/sessions", None).await;
        (status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_ends_the_session_and_its_tokens_in_all_services() {
    let app = TestApp::alone().await;
    let ada = app.person("ada@example.com", "support", None).await;
    let token = app.session_token(&ada.session).await;
    let end =
        async |session: &str| app.post("/v1/sessions/end", json!({"session": session})).await.0;
    for session in [ada.session.as_str(), &ada.session, "unknown", ""] {
        assert_eq!(end(session).await, StatusCode::NO_CONTENT);
    }
    assert!(!app.is_signed_in(&ada.session).await);
    rejected(&app, &token).await;
    let published = eventually("the revocation is published", TIMEOUT, async || {
        app.events("order-intake.token.revoked.v1").await.into_iter().next()
    })
    .await;
    assert_eq!(published["kind"], "session");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_is_no_failed_attempt() {
    let app = TestApp::start_with(&[("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "2")]).await;
    let ada = app.person("ada@example.com", "support", None).await;
    app.post("/v1/sessions/end", json!({"session": ada.session})).await;
    for _ in 0..5 {
        assert!(!app.is_signed_in(&ada.session).await);
    }
    assert_eq!(app.sign_in(&ada.email, PASSWORD, None).await.0, StatusCode::CREATED);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_sign_in_ends_the_previous_session_of_the_browser() {
    let app = TestApp::start().await;
    let [ada, bea] = [
        app.person("ada@example.com", "support", None).await,
        app.person("bea@example.com", "support", None).await,
    ];
    let sign_in = async |password: &str, previous: &str| {
        let body = json!({"email": ada.email, "password": password, "previous_session": previous});
        app.post("/v1/sessions", body).await.0
    };
    assert_eq!(sign_in("wrong", &bea.session).await, StatusCode::UNAUTHORIZED);
    assert!(app.is_signed_in(&bea.session).await, "a refused sign-in ends nothing");
    assert_eq!(sign_in(PASSWORD, &bea.session).await, StatusCode::CREATED);
    assert!(!app.is_signed_in(&bea.session).await);
    assert!(app.is_signed_in(&ada.session).await, "sessions of other browsers stay");
    assert_eq!(sign_in(PASSWORD, "unknown").await, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_no_sessions_of_its_own() {
    let app = TestApp::start().await;
    for (method, path, body) in [
        (Method::GET, "/v1/sessions", None),
        (Method::DELETE, "/v1/sessions", None),
        (Method::POST, "/v1/password", Some(json!({}))),
        (Method::POST, "/v1/recovery_codes", Some(json!({}))),
        (Method::POST, "/v1/totp/setup", Some(json!({}))),
        (Method::POST, "/v1/totp", Some(json!({}))),
    ] {
        assert_eq!(app.call(method, path, body).await.0, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_at_most_fifty_sessions() {
    let app = TestApp::alone().await;
    let ada = app.person("ada@example.com", "support", None).await;
    let copies = "INSERT INTO sessions \
        SELECT gen_random_uuid(), person, sha256(number::text::bytea), created_at + number * INTERVAL '1 second', \
               last_used_at, expires_at, address, user_agent \
        FROM sessions, generate_series(1, 49) AS number";
    app.service.database.execute_raw(copies).await;
    assert!(app.is_signed_in(&ada.session).await);
    assert_eq!(app.sign_in(&ada.email, PASSWORD, None).await.0, StatusCode::CREATED);
    assert!(!app.is_signed_in(&ada.session).await, "the oldest session ended");
    let count = app.service.database.count("SELECT count(*) AS n FROM sessions").await;
    assert_eq!(count, 50);
    app.stop().await;
}
