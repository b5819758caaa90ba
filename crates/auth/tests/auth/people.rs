//! Tests of people: their roles, their changes and the last operator.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    app::{TestApp, text},
    person::{PASSWORD, TestClock, code_at, invalid_fields},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_invited_person_signs_in_and_the_audit_log_names_the_person() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    let body = json!({"email": "Ada@Example.com", "name": "Ada", "role": "operator"});
    let (status, invited) = app.call(Method::POST, "/v1/people", Some(body)).await;
    assert_eq!(status, StatusCode::CREATED, "{invited}");
    assert_eq!(invited["person"]["state"], "invited");
    let token = text(&invited["invitation"], "token");
    let url = format!("http://localhost:8086/invitation?token={token}");
    assert_eq!(invited["invitation"]["url"], json!(url));

    let ada = app.accept(&token).await;
    assert_eq!((ada.email.as_str(), ada.recovery_codes.len()), ("ada@example.com", 10));
    clock.advance(chrono::TimeDelta::seconds(30));
    let code = code_at(&ada.secret, app.clock.now());
    let (status, started) = app.sign_in("ADA@example.com", PASSWORD, Some(&code)).await;
    assert_eq!(status, StatusCode::CREATED, "{started}");
    let (_, issued) = app.request_session_token(&text(&started, "session")).await;
    assert_eq!(issued["expires_in"], 600);
    let person = &issued["person"];
    assert_eq!((&person["state"], &person["totp"]), (&json!("active"), &json!(true)));
    assert!(person["last_signed_in_at"].is_string(), "{person}");

    let access_token = text(&issued, "access_token");
    let claims = claims(&access_token);
    assert_eq!((&claims["sub"], &claims["client_id"]), (&json!(ada.email), &json!("console")));
    assert_eq!((&claims["scope"], claims.get("merchant")), (&json!("operator"), None));
    let merchant = Some(json!({"identifier": "acme", "name": "Acme"}));
    let (status, _) = app.call_as(&access_token, Method::POST, "/v1/merchants", merchant).await;
    assert_eq!(status, StatusCode::CREATED);
    let expected = [
        ("person.invited", "operator"),
        ("person.accepted", "ada@example.com"),
        ("session.started", "ada@example.com"),
        ("session.started", "ada@example.com"),
        ("merchant.created", "ada@example.com"),
    ];
    let mut audited = app.audited().await;
    audited.retain(|(action, _)| expected.iter().any(|(expected, _)| expected == action));
    assert_eq!(audited, expected.map(|(action, actor)| (action.to_owned(), actor.to_owned())));
    app.stop().await;
}

/// The claims of a token, which is not verified.
fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap();
    serde_json::from_slice(&payload).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_gets_its_scopes_and_its_merchant() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    for (role, merchant, scope) in [
        ("support", None, "read replay"),
        ("merchant-admin", Some("acme"), "orders returns read replay manage"),
        ("merchant-viewer", Some("acme"), "read"),
    ] {
        let person = app.person(&format!("{role}@example.com"), role, merchant).await;
        let claims = claims(&app.session_token(&person.session).await);
        let expected = (json!(scope), merchant.map(|merchant| json!(app.service.own(merchant))));
        assert_eq!((claims["scope"].clone(), claims.get("merchant").cloned()), expected, "{role}");
        assert_eq!(person.recovery_codes, [""; 0], "{role} has no TOTP");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_without_a_fitting_role_or_address_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.invite("ada@example.com", "support", None).await;
    for (body, status, field) in [
        (json!({"email": "ada@example.com", "role": "support"}), StatusCode::CONFLICT, None),
        (
            json!({"email": "x@y.z", "role": "merchant-admin", "merchant": "nobody"}),
            StatusCode::NOT_FOUND,
            None,
        ),
        (
            json!({"email": "x", "role": "support"}),
            StatusCode::UNPROCESSABLE_ENTITY,
            Some("$.email"),
        ),
        (
            json!({"email": "x@y.z", "role": "owner"}),
            StatusCode::UNPROCESSABLE_ENTITY,
            Some("$.role"),
        ),
        (
            json!({"email": "x@y.z", "role": "support", "merchant": "acme"}),
            StatusCode::UNPROCESSABLE_ENTITY,
            Some("$.merchant"),
        ),
        (
            json!({"email": "x@y.z", "role": "merchant-viewer"}),
            StatusCode::UNPROCESSABLE_ENTITY,
            Some("$.merchant"),
        ),
    ] {
        let (actual, response) = app.call(Method::POST, "/v1/people", Some(body)).await;
        assert_eq!(actual, status, "{response}");
        if let Some(field) = field {
            assert_eq!(invalid_fields(&response), [field]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_active_operator_cannot_be_disabled_or_demoted() {
    let app = TestApp::alone().await;
    app.person("ada@example.com", "operator", None).await;
    // An operator who has not signed in yet does not count.
    app.invite("invited@example.com", "operator", None).await;
    let disable = async |email: &str| {
        app.call(Method::POST, &format!("/v1/people/{email}/disable"), None).await
    };
    let (status, body) = disable("ada@example.com").await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    let demote = Some(json!({"role": "support"}));
    let (status, _) = app.call(Method::PATCH, "/v1/people/ada@example.com", demote).await;
    assert_eq!(status, StatusCode::CONFLICT);

    app.person("bea@example.com", "operator", None).await;
    // Two requests at the same time cannot remove both.
    let (ada, bea) = tokio::join!(disable("ada@example.com"), disable("bea@example.com"));
    let mut statuses = [ada.0, bea.0];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::CONFLICT], "{ada:?} {bea:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_with_a_password_needs_totp() {
    let app = TestApp::start().await;
    app.person("ada@example.com", "support", None).await;
    let promote = Some(json!({"role": "operator"}));
    let (status, body) = app.call(Method::PATCH, "/v1/people/ada@example.com", promote).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    let (_, person) = app.call(Method::GET, "/v1/people/ada@example.com", None).await;
    assert_eq!((&person["role"], &person["totp"]), (&json!("support"), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_in_a_name_is_stored_and_returned_as_text() {
    let app = TestApp::alone().await;
    let name = "<script>alert(1)</script> & \"Ada\" 'x' {{7*7}}";
    let body = json!({"email": "ada@example.com", "name": name, "role": "support"});
    let (_, invited) = app.call(Method::POST, "/v1/people", Some(body)).await;
    let token = text(&invited["invitation"], "token");
    let (_, shown) = app.post("/v1/invitations/show", json!({"token": token})).await;
    let (_, page) = app.call(Method::GET, "/v1/people", None).await;
    let records = app.audit_records().await;
    for returned in [&invited["person"], &shown, &page["people"][0], &records[0]["detail"]] {
        assert_eq!(returned["name"], json!(name));
    }
    let body = json!({"email": "jo@example.com", "name": "Jo\u{202e}", "role": "support"});
    let (status, invalid) = app.call(Method::POST, "/v1/people", Some(body)).await;
    assert_eq!((status.as_u16(), &invalid["errors"][0]["field"]), (422, &json!("$.name")));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_or_disabled_person_loses_all_sessions_and_tokens() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let path = "/v1/people/ada@acme.example";
    let mut ada = app.person("ada@acme.example", "merchant-admin", Some("acme")).await;
    for (method, path, body, role) in [
        (Method::PATCH, path.to_owned(), Some(json!({"name": "Ada L."})), "merchant-admin"),
        (
            Method::PATCH,
            path.to_owned(),
            Some(json!({"role": "merchant-viewer"})),
            "merchant-viewer",
        ),
        (Method::PATCH, path.to_owned(), Some(json!({"role": "support"})), "support"),
        (Method::POST, format!("{path}/disable"), None, "support"),
    ] {
        let token = app.session_token(&ada.session).await;
        let keeps_rights = body.as_ref().is_some_and(|body| body.get("name").is_some());
        let (status, person) = app.call(method, &path, body).await;
        assert_eq!((status, &person["role"]), (StatusCode::OK, &json!(role)), "{person}");
        assert_eq!(app.is_signed_in(&ada.session).await, keeps_rights, "{person}");
        if keeps_rights {
            continue;
        }
        testkit::eventually("the token is rejected", crate::app::TIMEOUT, async || {
            let (status, _) = app.call_as(&token, Method::GET, "/v1/sessions", None).await;
            (status == StatusCode::UNAUTHORIZED).then_some(())
        })
        .await;
        // A person who leaves the merchant sets a new password.
        if let Some(token) = person["invitation"]["token"].as_str() {
            ada = app.accept(token).await;
        }
        let (status, started) = app.sign_in(&ada.email, PASSWORD, None).await;
        match person["state"].as_str().unwrap() {
            "disabled" => assert_eq!(status, StatusCode::UNAUTHORIZED),
            _ => ada.session = text(&started, "session"),
        }
    }
    let (_, enabled) = app.call(Method::POST, &format!("{path}/enable"), None).await;
    assert_eq!((&enabled["state"], &enabled["merchant"]), (&json!("active"), &Value::Null));
    assert_eq!(app.sign_in(&ada.email, PASSWORD, None).await.0, StatusCode::CREATED);
}
