//! Tests of the own authenticator app, and of guesses with a stolen session.

use chrono::TimeDelta;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    app::{TestApp, send, text},
    person::{PASSWORD, TestClock, TestPerson, code_at, invalid_fields},
};

const EMAIL: &str = "ada@example.com";

struct Account {
    app: TestApp,
    clock: TestClock,
    ada: TestPerson,
    token: String,
}

impl Account {
    /// A person with TOTP whose last code is not valid any more.
    async fn start(settings: &[(&str, &str)]) -> Self {
        let clock = TestClock::new();
        let app = TestApp::start_with_clock(clock.clock(), settings).await;
        let ada = app.person(EMAIL, "operator", None).await;
        let token = app.session_token(&ada.session).await;
        clock.advance(TimeDelta::seconds(60));
        Self { app, clock, ada, token }
    }

    fn code(&self) -> String {
        code_at(&self.ada.secret, self.app.clock.now())
    }

    async fn call(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.app.call_as(&self.token, Method::POST, path, Some(body)).await
    }

    /// A call with the key of an earlier one.
    async fn repeat(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.app.call_with_key(&self.token, "used", path, body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_credentials_needs_a_code() {
    let account = Account::start(&[]).await;
    let (_, setup) = account.call("/v1/totp/setup", json!({})).await;
    let new_code = code_at(&text(&setup, "secret"), account.app.clock.now());
    let requests = [
        ("/v1/password", json!({"current_password": PASSWORD, "new_password": "a new password"})),
        ("/v1/recovery_codes", json!({"password": PASSWORD})),
        (
            "/v1/totp",
            json!({"password": PASSWORD, "totp_setup": setup["setup"], "new_totp_code": new_code}),
        ),
    ];
    for (path, body) in &requests {
        let (status, refused) = account.call(path, body.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {refused}");
        assert_eq!(invalid_fields(&refused), ["$.totp_code"], "{path}");
    }
    // The fifth refusal of a session would end it.
    for (path, body) in &requests[1..] {
        let mut wrong = body.clone();
        wrong["totp_code"] = json!("000000");
        let (status, refused) = account.call(path, wrong).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {refused}");
        assert_eq!(invalid_fields(&refused), ["$.totp_code"], "{path}");
    }
    let (path, mut body) = requests[0].clone();
    for (code, fields) in [
        (json!("000000"), &["$.totp_code", "$.new_password"][..]),
        (Value::Null, &["$.new_password", "$.totp_code"]),
        (json!(account.code()), &["$.new_password"]),
    ] {
        let faults = json!({"current_password": PASSWORD, "new_password": "short",
            "totp_code": code});
        assert_eq!(invalid_fields(&account.call(path, faults).await.1), fields);
    }
    // The faults of the new password did not use the code up.
    body["totp_code"] = json!(account.code());
    let (status, changed) = account.call(path, body.clone()).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{changed}");
    body = json!({"current_password": "a new password", "new_password": "one more password",
        "totp_code": account.code()});
    let (status, _) = account.call(path, body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "a code works once");
    account.app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_changes_the_authenticator_app() {
    let account = Account::start(&[]).await;
    let app = &account.app;
    let ada = &account.ada;
    let (_, other) = app.sign_in(EMAIL, PASSWORD, Some(&ada.recovery_codes[0])).await;
    let (status, setup) = account.call("/v1/totp/setup", json!({})).await;
    assert_eq!((status, &setup["required"]), (StatusCode::OK, &json!(true)));
    let (_, again) = account.call("/v1/totp/setup", json!({"totp_setup": setup["setup"]})).await;
    assert_eq!(again["secret"], setup["secret"], "a rejected form keeps its QR code");
    let secret = text(&setup, "secret");
    let change = async |setup: &Value, new_code: &str| {
        let body = json!({"password": PASSWORD, "totp_code": account.code(),
            "totp_setup": setup["setup"], "new_totp_code": new_code});
        account.call("/v1/totp", body).await
    };
    let (status, refused) = change(&setup, "000000").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    assert_eq!(invalid_fields(&refused), ["$.new_totp_code"]);
    let (_, refused) = change(&json!({"setup": "another"}), "000000").await;
    assert_eq!(invalid_fields(&refused), ["$.totp_setup"]);
    // Neither used the code up.
    let (status, changed) = change(&setup, &code_at(&secret, app.clock.now())).await;
    assert_eq!(status, StatusCode::CREATED, "{changed}");
    assert_eq!(changed["recovery_codes"].as_array().unwrap().len(), 10);
    assert!(app.is_signed_in(&ada.session).await);
    assert!(!app.is_signed_in(&text(&other, "session")).await, "other sessions end");

    account.clock.advance(TimeDelta::seconds(60));
    let sign_in = async |code: &str| app.sign_in(EMAIL, PASSWORD, Some(code)).await.0;
    assert_eq!(sign_in(&account.code()).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&ada.recovery_codes[1]).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&code_at(&secret, app.clock.now())).await, StatusCode::CREATED);
    let audited = app.audited().await;
    assert!(audited.contains(&("totp.changed".to_owned(), EMAIL.to_owned())), "{audited:?}");
    account.app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_needs_the_password_and_the_code() {
    for path in ["/v1/recovery_codes", "/v1/totp"] {
        let account = Account::start(&[]).await;
        let mut body = json!({"password": PASSWORD, "totp_code": account.code()});
        if path == "/v1/totp" {
            let (_, setup) = account.call("/v1/totp/setup", json!({})).await;
            let new_code = code_at(&text(&setup, "secret"), account.app.clock.now());
            body["totp_setup"] = setup["setup"].clone();
            body["new_totp_code"] = json!(new_code);
        }
        let first = account.repeat(path, body.clone()).await;
        assert_eq!(first.0, StatusCode::CREATED, "{path}: {}", first.1);
        for (field, wrong, fields) in [
            ("password", json!("guess"), ["$.password"]),
            ("totp_code", json!("000000"), ["$.totp_code"]),
            ("totp_code", Value::Null, ["$.totp_code"]),
        ] {
            let mut guess = body.clone();
            guess[field] = wrong;
            let (status, refused) = account.repeat(path, guess).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {refused}");
            assert_eq!(invalid_fields(&refused), fields, "{path}");
        }
        // The codes of the request and of the new app are used up or have expired by now.
        account.clock.advance(TimeDelta::seconds(120));
        assert_eq!(account.repeat(path, body).await, first, "{path}");
        account.app.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_end_the_session_and_are_in_the_audit_log() {
    let account = Account::start(&[]).await;
    let body = json!({"password": "guess", "totp_code": "000000"});
    for _ in 0..4 {
        let (status, refused) = account.call("/v1/recovery_codes", body.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
        assert_eq!(invalid_fields(&refused), ["$.password"]);
    }
    let (status, refused) = account.call("/v1/recovery_codes", body).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{refused}");
    assert!(!account.app.is_signed_in(&account.ada.session).await);
    // The token is refused before its revocation arrives.
    let right = json!({"password": PASSWORD, "totp_code": account.code()});
    assert_eq!(account.call("/v1/recovery_codes", right).await.0, StatusCode::UNAUTHORIZED);
    let records = account.app.audit_records().await;
    let refusals = records.iter().filter(|record| record["action"] == "password.refused");
    let expected = json!({"reason": "password", "address": "127.0.0.1"});
    assert!(refusals.clone().all(|record| record["detail"] == expected), "{records:?}");
    assert_eq!(refusals.count(), 5);
    account.app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_of_stolen_sessions_count_for_the_person() {
    let settings =
        [("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let account = Account::start(&settings).await;
    let guess = async |host: u32| {
        let request = account.app.request(Method::POST, "/v1/recovery_codes");
        let request = request.bearer_auth(&account.token);
        let request = request.header("x-forwarded-for", format!("192.0.2.{host}"));
        send(request.json(&json!({"password": "guess", "totp_code": "000000"}))).await.0
    };
    for host in 1..=4 {
        assert_eq!(guess(host).await, StatusCode::UNPROCESSABLE_ENTITY);
    }
    assert_eq!(guess(5).await, StatusCode::TOO_MANY_REQUESTS);
    account.app.stop().await;
}
