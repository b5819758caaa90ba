//! Tests of invitations.

use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    app::{NO_LOCKOUT, OPERATOR, OPERATOR_SECRET, TIMEOUT, TestApp, send, text},
    person::{PASSWORD, TestClock, code_at, invalid_fields},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_shows_the_person_and_works_once() {
    let app = TestApp::start().await;
    let token = app.invite("ada@example.com", "operator", None).await;
    let show = async || app.post("/v1/invitations/show", json!({"token": token})).await;
    let (status, shown) = show().await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&shown["email"], &shown["role"]), (&json!("ada@example.com"), &json!("operator")));
    assert_eq!(shown["totp"]["required"], true);
    let uri = text(&shown["totp"], "uri");
    assert!(uri.starts_with("otpauth://totp/Backhaul:ada%40example.com?"), "{uri}");

    app.accept(&token).await;
    assert_eq!(show().await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_has_the_same_link() {
    let app = TestApp::start().await;
    let person = json!({"email": "ada@example.com", "name": "Ada", "role": "support"});
    for (name, path, body) in [
        ("invite", "/v1/people", person),
        ("renew", "/v1/people/ada@example.com/invitation", json!({})),
    ] {
        let key = app.service.own(name);
        let send = || app.call_with_key(&app.operator_token, &key, path, body.clone());
        let (first, second) = tokio::join!(send(), send());
        assert_eq!(first.0, StatusCode::CREATED, "{name}: {}", first.1);
        assert_eq!(first, second);
        let by_token = json!({"token": first.1["invitation"]["token"]});
        let (status, shown) = app.post("/v1/invitations/show", by_token).await;
        assert_eq!(status, StatusCode::OK, "{name}: {shown}");
    }
    let records = format!("{:?}", app.audit_records().await);
    for action in ["person.invited", "person.invitation_renewed"] {
        assert_eq!(records.matches(action).count(), 1, "{action}: {records}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_is_the_same_acceptance() {
    let app = TestApp::start().await;
    let token = app.invite("ada@example.com", "operator", None).await;
    let (_, shown) = app.post("/v1/invitations/show", json!({"token": token})).await;
    let body = json!({"token": token, "password": PASSWORD,
        "totp_code": code_at(&text(&shown["totp"], "secret"), app.clock.now()),
        "totp_setup": shown["totp"]["setup"]});
    let accept = async |key: &str| accept_with_key(&app, key, &body).await;
    let (first, second) = tokio::join!(accept("accept"), accept("accept"));
    assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
    assert_eq!(first.1["recovery_codes"].as_array().unwrap().len(), 10);
    assert_eq!(second, first);
    assert_eq!(accept("accept").await, first);
    assert_eq!(accept("other").await.0, StatusCode::NOT_FOUND);
    assert!(app.is_signed_in(&text(&first.1, "session")).await);
    // With the setup of another page, the authenticator app has another secret than the one that was set.
    let mut other_page = body.clone();
    other_page["totp_setup"] = json!("another");
    let (status, refused) = accept_with_key(&app, "accept", &other_page).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
}

async fn accept_with_key(app: &TestApp, key: &str, body: &Value) -> (StatusCode, Value) {
    let request = app.request(Method::POST, "/v1/invitations/accept");
    send(request.header("idempotency-key", app.service.own(key)).json(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_acceptance_with_another_password_says_that_the_invitation_was_accepted() {
    const OTHER: &str = "another long password";
    let app = TestApp::start().await;
    let token = app.invite("ada@example.com", "support", None).await;
    let accept = async |password: &str| {
        let body = json!({"token": token, "password": password});
        accept_with_key(&app, "accept", &body).await
    };
    let (one, two) = tokio::join!(accept(PASSWORD), accept(OTHER));
    let mut statuses = [one.0, two.0];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::CREATED, StatusCode::CONFLICT], "{} {}", one.1, two.1);
    let is_one = one.0 == StatusCode::CREATED;
    let (first, password, other) =
        if is_one { (one, PASSWORD, OTHER) } else { (two, OTHER, PASSWORD) };
    assert_eq!(accept(password).await, first);
    let (status, refused) = accept(other).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["message"], "the invitation was already accepted, with another password");
    let sign_in = async |password: &str| app.sign_in("ada@example.com", password, None).await.0;
    assert_eq!(sign_in(other).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(password).await, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_reader_of_the_link_does_not_see_the_accepted_secret() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &NO_LOCKOUT).await;
    let token = app.invite("ada@example.com", "operator", None).await;
    let show = async |setup: Value| {
        let body = json!({"token": token, "totp_setup": setup});
        app.post("/v1/invitations/show", body).await.1["totp"].clone()
    };
    let seen = show(Value::Null).await;
    let own = show(Value::Null).await;
    assert_ne!(seen["secret"], own["secret"]);
    // A rejected form shows the same QR code again; a setup that was changed gives a new one.
    assert_eq!(show(own["setup"].clone()).await["secret"], own["secret"]);
    assert_ne!(show(json!("test.AAAA")).await["secret"], own["secret"]);

    let other = app.invite("bea@example.com", "operator", None).await;
    let code = code_at(&text(&own, "secret"), app.clock.now());
    let accept = async |token: &str, setup: &Value| {
        let body = json!({"token": token, "password": PASSWORD, "totp_code": code,
            "totp_setup": setup});
        app.post("/v1/invitations/accept", body).await
    };
    for (token, setup, field) in [
        (&token, &Value::Null, "$.totp_setup"),
        (&token, &json!("test.AAAA"), "$.totp_setup"),
        (&token, &seen["setup"], "$.totp_code"),
        (&other, &own["setup"], "$.totp_setup"),
    ] {
        let (status, body) = accept(token, setup).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        assert_eq!(invalid_fields(&body), [field]);
    }
    let (status, body) = accept(&token, &own["setup"]).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    clock.advance(TimeDelta::seconds(30));
    for (secret, status) in [(&seen, StatusCode::UNAUTHORIZED), (&own, StatusCode::CREATED)] {
        let code = code_at(&text(secret, "secret"), app.clock.now());
        assert_eq!(app.sign_in("ada@example.com", PASSWORD, Some(&code)).await.0, status);
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn used_replaced_expired_voided_and_unknown_invitations_are_alike() {
    let clock = TestClock::new();
    let mut app = TestApp::start_with_clock(clock.clock(), &NO_LOCKOUT).await;
    let expired = app.invite("expired@example.com", "support", None).await;
    clock.advance(TimeDelta::hours(72));
    app.operator_token = app.token(OPERATOR, OPERATOR_SECRET).await;
    let used = app.invite("used@example.com", "support", None).await;
    app.accept(&used).await;
    let replaced = app.invite("replaced@example.com", "support", None).await;
    app.call(Method::POST, "/v1/people/replaced@example.com/invitation", None).await;
    let voided = app.invite("voided@example.com", "support", None).await;
    app.call(Method::POST, "/v1/people/voided@example.com/disable", None).await;
    let mut bodies = Vec::new();
    for token in [&expired, &used, &replaced, &voided, "unknown", ""] {
        for (path, body) in [
            ("/v1/invitations/show", json!({"token": token})),
            ("/v1/invitations/accept", json!({"token": token, "password": PASSWORD})),
        ] {
            let (status, mut response) = app.post(path, body).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{response}");
            response.as_object_mut().unwrap().remove("request_id");
            bodies.push(response);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_acceptances_at_the_same_time_one_succeeds() {
    let app = TestApp::start().await;
    let token = app.invite("ada@example.com", "support", None).await;
    let accept = async |password: &str| {
        let body = json!({"token": token, "password": password});
        app.post("/v1/invitations/accept", body).await.0
    };
    let (one, two) = tokio::join!(accept("one long password"), accept("another password"));
    let mut statuses = [one, two];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::CREATED, StatusCode::NOT_FOUND]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acceptance_names_every_invalid_field() {
    let app = TestApp::alone().await;
    let token = app.invite("adalovelace@example.com", "operator", None).await;
    let (_, shown) = app.post("/v1/invitations/show", json!({"token": token})).await;
    let accept = async |password: &str, code: Value| {
        let body = json!({"token": token, "password": password, "totp_code": code,
            "totp_setup": shown["totp"]["setup"]});
        let (status, body) = app.post("/v1/invitations/accept", body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        body
    };
    for password in ["AdaLovelace@Example.com", "Password123", "12345678"] {
        let body = accept(password, Value::Null).await;
        assert_eq!(invalid_fields(&body), ["$.password", "$.totp_code"]);
    }
    for password in ["seven77", "", &"x".repeat(129)] {
        let body = accept(password, json!("000000")).await;
        assert_eq!(invalid_fields(&body), ["$.password", "$.totp_code"]);
    }
    let different = json!({"token": token, "password": "seven77", "password_again": "seven78",
        "totp_code": "000000", "totp_setup": shown["totp"]["setup"]});
    let (_, body) = app.post("/v1/invitations/accept", different).await;
    assert_eq!(invalid_fields(&body), ["$.password", "$.password_again", "$.totp_code"]);
    let body = accept(PASSWORD, Value::Null).await;
    assert_eq!(
        (invalid_fields(&body), &body["errors"][0]["code"]),
        (vec!["$.totp_code"], &json!("missing_field"))
    );
    let body = accept(PASSWORD, json!("12345")).await;
    assert_eq!(
        (invalid_fields(&body), &body["errors"][0]["code"]),
        (vec!["$.totp_code"], &json!("invalid"))
    );
    app.accept(&token).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_password_works_until_the_new_invitation_is_accepted() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let ada = app.person("ada@example.com", "operator", None).await;
    let path = "/v1/people/ada@example.com/invitation";
    let (status, invited) = app.call(Method::POST, path, None).await;
    assert_eq!((status, &invited["person"]["state"]), (StatusCode::CREATED, &json!("active")));
    clock.advance(TimeDelta::seconds(30));
    let code = code_at(&ada.secret, app.clock.now());
    let (status, started) = app.sign_in(&ada.email, PASSWORD, Some(&code)).await;
    assert_eq!(status, StatusCode::CREATED);

    let token = text(&invited["invitation"], "token");
    let (_, shown) = app.post("/v1/invitations/show", json!({"token": token})).await;
    let secret = text(&shown["totp"], "secret");
    assert_ne!(secret, ada.secret);
    let body = json!({"token": token, "password": "another long password",
        "totp_code": code_at(&secret, app.clock.now()), "totp_setup": shown["totp"]["setup"]});
    let (status, accepted) = app.post("/v1/invitations/accept", body).await;
    assert_eq!(status, StatusCode::CREATED, "{accepted}");
    assert!(!app.is_signed_in(&text(&started, "session")).await, "older sessions end");
    assert!(app.is_signed_in(&text(&accepted, "session")).await);
    clock.advance(TimeDelta::seconds(30));
    let old_code = code_at(&ada.secret, app.clock.now());
    let refused = app.sign_in(&ada.email, PASSWORD, Some(&old_code)).await.0;
    assert_eq!(refused, StatusCode::UNAUTHORIZED);
    for (password, secret, status) in [
        ("another long password", &ada.secret, StatusCode::UNAUTHORIZED),
        ("another long password", &secret, StatusCode::CREATED),
    ] {
        let code = code_at(secret, app.clock.now());
        assert_eq!(app.sign_in(&ada.email, password, Some(&code)).await.0, status);
    }
    let refused =
        app.sign_in(&ada.email, "another long password", Some(&ada.recovery_codes[0])).await;
    assert_eq!(refused.0, StatusCode::UNAUTHORIZED, "old recovery codes are void");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_person_is_not_invited_and_returns_to_the_state_before() {
    let app = TestApp::start().await;
    app.invite("ada@example.com", "support", None).await;
    let call = async |path: &str| {
        app.call(Method::POST, &format!("/v1/people/ada@example.com/{path}"), None).await
    };
    assert_eq!(call("disable").await.1["state"], "disabled");
    assert_eq!(call("invitation").await.0, StatusCode::CONFLICT);
    assert_eq!(call("enable").await.1["state"], "invited");
    assert_eq!(call("invitation").await.0, StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_invitations_and_sessions_are_deleted() {
    let app = TestApp::alone().await;
    app.person("ada@example.com", "support", None).await;
    app.invite("bea@example.com", "support", None).await;
    let database = &app.service.database;
    for table in ["invitations", "sessions"] {
        let sql = format!("UPDATE {table} SET expires_at = expires_at - INTERVAL '100 hours'");
        database.execute_raw(&sql).await;
    }
    // The task runs at startup and every minute.
    let app = app.restart().await;
    eventually("the rows are deleted", TIMEOUT, async || {
        let query =
            "SELECT (SELECT count(*) FROM invitations) + (SELECT count(*) FROM sessions) AS n";
        (app.service.database.count(query).await == 0).then_some(())
    })
    .await;
    let (_, page) = app.call(Method::GET, "/v1/people", None).await;
    assert_eq!(page["people"].as_array().unwrap().len(), 2, "people stay");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_that_is_accepted_during_a_change_of_rights_follows_the_new_rights() {
    let app = TestApp::alone().await;
    let token = app.invite("ada@example.com", "support", None).await;
    let mut manager = app.service.database.pool().get().await.unwrap();
    let change = "BEGIN; UPDATE people SET role = 'operator' WHERE email = 'ada@example.com'";
    manager.batch_execute(change).await.unwrap();
    let committing = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("the acceptance waits for the change", TIMEOUT, async || {
            (app.service.database.count(waiting).await > 0).then_some(())
        })
        .await;
        manager.batch_execute("COMMIT").await.unwrap();
    };
    let without_code = json!({"token": token, "password": PASSWORD});
    let accepting = app.post("/v1/invitations/accept", without_code);
    let ((status, body), ()) = tokio::join!(accepting, committing);
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    assert_eq!(invalid_fields(&body), ["$.totp_code"]);
    // The invitation was not used up.
    app.accept(&token).await;
    app.stop().await;
}
