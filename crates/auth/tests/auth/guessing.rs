//! Tests of the limits for guesses of one person's password and codes from many addresses.

use chrono::TimeDelta;
use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

use crate::{
    app::{TestApp, send, text},
    person::{PASSWORD, TestClock, code_at},
};

const EMAIL: &str = "ada@example.com";

/// Signs in from an address that a trusted proxy names.
async fn sign_in(app: &TestApp, address: &str, email: &str, password: &str) -> StatusCode {
    let body = json!({"email": email, "password": password});
    let request = app.request(Method::POST, "/v1/sessions").header("x-forwarded-for", address);
    send(request.json(&body)).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_from_many_addresses_delay_the_next_attempt() {
    let clock = TestClock::new();
    let settings =
        [("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let app = TestApp::start_with_clock(clock.clock(), &settings).await;
    app.person(EMAIL, "support", None).await;
    let refused = StatusCode::UNAUTHORIZED;
    let delayed = StatusCode::TOO_MANY_REQUESTS;
    // A person who does not exist has the same limit.
    for email in [EMAIL, "nobody@example.com"] {
        for host in 1..=4 {
            let address = format!("192.0.2.{host}");
            assert_eq!(sign_in(&app, &address, email, "wrong").await, refused);
        }
        assert_eq!(sign_in(&app, "192.0.2.5", email, PASSWORD).await, delayed);
    }
    // At the address of the last sign-in, the response does not tell who exists either.
    for email in [EMAIL, "nobody@example.com"] {
        assert_eq!(app.sign_in(email, "wrong", None).await.0, delayed, "{email}");
    }
    // Others cannot lock the person out of that address.
    assert_eq!(app.sign_in(EMAIL, PASSWORD, None).await.0, StatusCode::CREATED);
    for host in 1..=5 {
        sign_in(&app, &format!("192.0.2.{host}"), EMAIL, "wrong").await;
        clock.advance(TimeDelta::seconds(i64::from(host > 3)));
    }
    let address = "192.0.2.6";
    let body = json!({"email": EMAIL, "password": PASSWORD});
    let request = app.request(Method::POST, "/v1/sessions").header("x-forwarded-for", address);
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), delayed, "the fifth failure doubled the wait");
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    clock.advance(TimeDelta::seconds(1));
    assert_eq!(sign_in(&app, address, EMAIL, PASSWORD).await, StatusCode::CREATED);
    // A sign-in clears the failures.
    assert_eq!(sign_in(&app, "192.0.2.7", EMAIL, "wrong").await, refused);
    assert_eq!(sign_in(&app, "192.0.2.8", EMAIL, PASSWORD).await, StatusCode::CREATED);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_sign_ins_are_in_the_audit_log() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.person(EMAIL, "merchant-viewer", Some("acme")).await;
    app.sign_in(EMAIL, "wrong", None).await;
    app.sign_in("nobody@example.com", "wrong", None).await;
    let records = app.audit_records().await;
    let refused: Vec<&Value> =
        records.iter().filter(|record| record["action"] == "session.refused").collect();
    let [record] = refused[..] else { panic!("{refused:?}") };
    assert_eq!(
        (text(record, "actor"), text(record, "merchant")),
        ("sign_in".into(), "acme".into())
    );
    assert_eq!(record["subject"], format!("person/{EMAIL}"));
    assert_eq!(
        (&record["detail"]["reason"], &record["detail"]["address"]),
        (&json!("password"), &json!("127.0.0.1"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_wrong_codes_in_a_row_need_a_new_invitation() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person(EMAIL, "operator", None).await;
    let database = &app.service.database;
    database.execute_raw("UPDATE people SET wrong_codes = 99").await;
    let sign_in = async |secret: &str| {
        clock.advance(TimeDelta::seconds(30));
        app.sign_in(EMAIL, PASSWORD, Some(&code_at(secret, app.clock.now()))).await.0
    };
    assert_eq!(sign_in(&ada.secret).await, StatusCode::CREATED, "99 are allowed");
    let counted = "SELECT count(*) AS n FROM people WHERE wrong_codes = 0";
    assert_eq!(database.count(counted).await, 1, "a right code starts again");

    database.execute_raw("UPDATE people SET wrong_codes = 99").await;
    let wrong = app.sign_in(EMAIL, PASSWORD, Some("wrong")).await.0;
    assert_eq!(wrong, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&ada.secret).await, StatusCode::UNAUTHORIZED);
    let recovery = app.sign_in(EMAIL, PASSWORD, Some(&ada.recovery_codes[0])).await.0;
    assert_eq!(recovery, StatusCode::UNAUTHORIZED);

    let path = format!("/v1/people/{EMAIL}/invitation");
    let (_, invited) = app.call(Method::POST, &path, None).await;
    let ada = app.accept(&text(&invited["invitation"], "token")).await;
    assert_eq!(sign_in(&ada.secret).await, StatusCode::CREATED);
    app.stop().await;
}
