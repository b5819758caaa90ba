//! Tests of sign-in and of the protection against guessing passwords and codes.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use reqwest::{Method, StatusCode, header};
use serde_json::json;

use crate::{
    app::{NO_LOCKOUT, TestApp, send},
    person::{PASSWORD, TestClock, code_at},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_the_same_status_and_words() {
    // The clock stands still, so that the code is the one that the person has used.
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &NO_LOCKOUT).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    app.person("disabled@example.com", "support", None).await;
    app.call(Method::POST, "/v1/people/disabled@example.com/disable", None).await;
    app.invite("invited@example.com", "support", None).await;
    let used_code = code_at(&ada.secret, app.clock.now());
    let mut bodies = Vec::new();
    for (email, password, code) in [
        ("nobody@example.com", PASSWORD, None),
        ("not an address", PASSWORD, None),
        ("", "", None),
        ("ada@example.com", "wrong", None),
        ("ada@example.com", "wrong", Some(ada.recovery_codes[0].as_str())),
        ("ada@example.com", PASSWORD, None),
        ("ada@example.com", PASSWORD, Some("")),
        ("ada@example.com", PASSWORD, Some("00000x")),
        ("ada@example.com", PASSWORD, Some(used_code.as_str())),
        ("disabled@example.com", PASSWORD, None),
        ("invited@example.com", PASSWORD, None),
    ] {
        let (status, mut body) = app.sign_in(email, password, code).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{email} {code:?}: {body}");
        body.as_object_mut().unwrap().remove("request_id");
        bodies.push(body);
    }
    bodies.dedup();
    assert_eq!(
        bodies,
        [json!({"message": "the e-mail address, the password or the code is wrong"})]
    );
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_person_takes_as_long_as_a_wrong_password() {
    let app = TestApp::start_with(&NO_LOCKOUT).await;
    app.person("ada@example.com", "support", None).await;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..9 {
        for (email, times) in ["ada@example.com", "nobody"].into_iter().zip(&mut times) {
            let started_at = Instant::now();
            assert_eq!(app.sign_in(email, "wrong", None).await.0, StatusCode::UNAUTHORIZED);
            times.push(started_at.elapsed());
        }
    }
    // Other work on the machine only makes a request longer, so the shortest is compared.
    let [known, unknown] = times.map(|times: Vec<Duration>| times.into_iter().min().unwrap());
    // Without a hash, an unknown person would take a tenth of the time.
    assert!(unknown > known / 2, "known {known:?}, unknown {unknown:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_totp_code_is_accepted_once_and_a_recovery_code_once() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &NO_LOCKOUT).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    let sign_in = async |code: &str| app.sign_in("ada@example.com", PASSWORD, Some(code)).await.0;
    let code_after =
        |seconds: i64| code_at(&ada.secret, app.clock.now() + TimeDelta::seconds(seconds));
    let accepted = StatusCode::CREATED;
    let refused = StatusCode::UNAUTHORIZED;
    assert_eq!(sign_in(&code_after(0)).await, refused, "the code of the invitation was used");
    clock.advance(TimeDelta::seconds(60));
    assert_eq!(sign_in(&code_after(-60)).await, refused, "too old");
    assert_eq!(sign_in(&code_after(60)).await, refused, "too new");
    assert_eq!(sign_in(&code_after(-30)).await, accepted);
    assert_eq!(sign_in(&code_after(-30)).await, refused, "used");
    assert_eq!(sign_in(&code_after(30)).await, accepted);
    assert_eq!(sign_in(&code_after(0)).await, refused, "older than the last one");

    let [first, second] = [0, 1].map(|index: usize| ada.recovery_codes[index].as_str());
    assert_eq!(sign_in(first).await, accepted);
    assert_eq!(sign_in(first).await, refused);
    assert_eq!(sign_in(&second.to_uppercase().replace('-', " ")).await, accepted);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_totp_code_is_accepted_once_by_concurrent_requests() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &NO_LOCKOUT).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    clock.advance(TimeDelta::seconds(30));
    let code = code_at(&ada.secret, app.clock.now());
    let sign_in = async || app.sign_in("ada@example.com", PASSWORD, Some(&code)).await.0;
    let (one, two, three) = tokio::join!(sign_in(), sign_in(), sign_in());
    let mut statuses = [one, two, three];
    statuses.sort();
    let accepted = StatusCode::CREATED;
    let refused = StatusCode::UNAUTHORIZED;
    assert_eq!(statuses, [accepted, refused, refused]);
    app.stop().await;
}

/// Signs in from an address that a trusted proxy names.
async fn sign_in_from(app: &TestApp, address: &str, email: &str, code: &str) -> StatusCode {
    let body = json!({"email": email, "password": PASSWORD, "totp_code": code});
    let request = app.request(Method::POST, "/v1/sessions").header("x-forwarded-for", address);
    request.json(&body).send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_failures_lock_an_address_out_of_one_person() {
    let app = TestApp::start_with(&[("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3")]).await;
    app.person("ada@example.com", "support", None).await;
    app.person("bea@example.com", "support", None).await;
    for _ in 0..4 {
        let refused = app.sign_in("ADA@example.com", "wrong", None).await.0;
        assert_eq!(refused, StatusCode::UNAUTHORIZED);
    }
    let body = json!({"email": "ada@example.com", "password": PASSWORD});
    let request = app.request(Method::POST, "/v1/sessions").json(&body);
    let rejected = request.send().await.unwrap();
    assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(rejected.headers()[header::RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    let other = app.sign_in("bea@example.com", PASSWORD, None).await;
    assert_eq!(other.0, StatusCode::CREATED, "{}", other.1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_with_many_people_lock_an_address_out_of_nobody() {
    let settings = [("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3")];
    let app = TestApp::start_with(&settings).await;
    let ada = app.person("ada@example.com", "support", None).await;
    for guess in 0..12 {
        let email = format!("nobody-{guess}@example.com");
        assert_eq!(app.sign_in(&email, PASSWORD, None).await.0, StatusCode::UNAUTHORIZED);
        let invitation = app.post("/v1/invitations/show", json!({"token": "x"})).await;
        assert_eq!(invitation.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(app.sign_in(&ada.email, PASSWORD, None).await.0, StatusCode::CREATED);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_a_person_are_limited_over_all_addresses() {
    let clock = TestClock::new();
    let settings =
        [("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let app = TestApp::start_with_clock(clock.clock(), &settings).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    clock.advance(TimeDelta::seconds(30));
    let code = code_at(&ada.secret, app.clock.now());
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let refused = sign_in_from(&app, address, &ada.email, "wrong").await;
        assert_eq!(refused, StatusCode::UNAUTHORIZED);
    }
    // The response does not reveal that the password was right.
    let refused = sign_in_from(&app, "192.0.2.4", &ada.email, &code).await;
    assert_eq!(refused, StatusCode::UNAUTHORIZED);
    clock.advance(TimeDelta::seconds(61));
    let code = code_at(&ada.secret, app.clock.now());
    assert_eq!(sign_in_from(&app, "192.0.2.4", &ada.email, &code).await, StatusCode::CREATED);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_people_can_sign_in_at_the_same_time_with_one_hasher() {
    let app = TestApp::start_with(&[("PEOPLE__PASSWORD_HASHERS", "1")]).await;
    app.person("ada@example.com", "support", None).await;
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let body = json!({"email": "ada@example.com", "password": PASSWORD});
        requests.spawn(app.request(Method::POST, "/v1/sessions").json(&body).send());
    }
    for response in requests.join_all().await {
        assert_eq!(response.unwrap().status(), StatusCode::CREATED);
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_can_be_switched_off() {
    let app = TestApp::start_with(&[
        ("PEOPLE__PASSWORDS", "false"),
        ("OIDC__ISSUER", "https://id.example.com"),
        ("OIDC__NAME", "Example ID"),
        ("OIDC__CLIENT_ID", "backhaul"),
        ("OIDC__ROLES", "staff=support"),
    ])
    .await;
    let body = json!({"email": "ada@example.com", "role": "support"});
    let (status, refused) = app.call(Method::POST, "/v1/people", Some(body)).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("nobody can be invited"), "{refused}");
    let renew = "/v1/people/ada@example.com/invitation";
    assert_eq!(app.call(Method::POST, renew, None).await.0, StatusCode::FORBIDDEN);
    // A link from before says so when it is opened, not when the form was filled in.
    let shown = app.post("/v1/invitations/show", json!({"token": "x"})).await;
    assert_eq!(shown.0, StatusCode::FORBIDDEN, "{}", shown.1);
    let body = json!({"token": "x", "password": PASSWORD});
    assert_eq!(app.post("/v1/invitations/accept", body).await.0, StatusCode::FORBIDDEN);
    let refused = app.sign_in("ada@example.com", PASSWORD, None).await.0;
    assert_eq!(refused, StatusCode::FORBIDDEN);
    let (_, methods) = send(app.request(Method::GET, "/v1/sign_in_methods")).await;
    assert_eq!(methods, json!({"password": false, "oidc": {"name": "Example ID"}}));
    app.stop().await;
}
