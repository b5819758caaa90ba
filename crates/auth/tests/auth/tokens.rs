//! Tests of the token endpoint and of the protection against guessing secrets.

use std::cell::RefCell;
use std::time::Instant;

use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::io::AsyncReadExt as _;

use crate::app::{
    NO_LOCKOUT, OPERATOR, OPERATOR_SECRET, TIMEOUT, TestApp, form, send, token_request,
};

const GRANT: &str = "grant_type=client_credentials";

async fn assert_rejected(request: RequestBuilder, status: u16, error: &str) {
    let response = request.send().await.unwrap();
    assert_not_cacheable(&response);
    let actual = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert_eq!((actual, body["error"].as_str().unwrap()), (status, error), "{body}");
    let description = body["error_description"].as_str().unwrap();
    let is_allowed = |c| matches!(c, ' '..='!' | '#'..='[' | ']'..='~');
    assert!(description.chars().all(is_allowed), "{description}");
}

fn assert_not_cacheable(response: &Response) {
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    assert_eq!(response.headers()[header::PRAGMA], "no-cache");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_can_be_requested_with_json_form_or_basic_auth() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(Some("acme"), &["returns", "orders"]).await;
    let token = || app.request(Method::POST, "/oauth/token");
    let credentials = format!("client_id={id}&client_secret={secret}");
    for request in [
        token().json(&token_request(&id, &secret)),
        form(token(), &format!("{GRANT}&{credentials}")),
        form(token().basic_auth(&id, Some(&secret)), GRANT),
        form(token().basic_auth(&id, Some(&secret)), &format!("{GRANT}&client_id={id}")),
        token().basic_auth(&id, Some(&secret)).json(&json!({"grant_type": "client_credentials"})),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_not_cacheable(&response);
        let token: Value = response.json().await.unwrap();
        let mut fields: Vec<_> = token.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["access_token", "created_at", "expires_in", "scope", "token_type"]);
        assert_eq!(token["expires_in"], 90_000);
        assert_eq!(token["scope"], "orders returns");
        assert_eq!(token["token_type"], "Bearer");
        assert!(token["created_at"].is_i64());
    }
    let one_scope = format!("{GRANT}&scope=orders&{credentials}");
    let (status, body) = send(form(token(), &one_scope)).await;
    assert_eq!((status, &body["scope"]), (StatusCode::OK, &json!("orders")));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_token_requests_get_oauth_errors() {
    let app = TestApp::start().await;
    let token = || app.request(Method::POST, "/oauth/token");
    let valid = format!("client_id={OPERATOR}&client_secret={OPERATOR_SECRET}");
    for (fields, status, error) in [
        (valid.clone(), 400, "invalid_request"),
        (format!("grant_type=&{valid}"), 400, "invalid_request"),
        (format!("{GRANT}&{GRANT}&{valid}"), 400, "invalid_request"),
        (format!("{GRANT}&client_id={OPERATOR}"), 400, "invalid_request"),
        (format!("{GRANT}&client_secret=x"), 400, "invalid_request"),
        (format!("{GRANT}&%22%5C%C3%A9=1&%22%5C%C3%A9=2&{valid}"), 400, "invalid_request"),
        (format!("grant_type=password&{valid}"), 400, "unsupported_grant_type"),
        (format!("{GRANT}&scope=orders&{valid}"), 400, "invalid_scope"),
        (format!("{GRANT}&scope=magic&{valid}"), 400, "invalid_scope"),
        (GRANT.to_owned(), 401, "invalid_client"),
        (format!("{GRANT}&client_id={OPERATOR}&client_secret=wrong"), 401, "invalid_client"),
        (format!("{GRANT}&client_id=nobody&client_secret=wrong"), 401, "invalid_client"),
    ] {
        assert_rejected(form(token(), &fields), status, error).await;
    }
    let null = "{\"grant_type\": \"\u{0}\"}";
    let twice = r#"{"grant_type": "a", "grant_type": "b"}"#;
    let quoted = "{\"grant_type\": 7, \"\\\"\u{e9}\\\\\": 1, \"\\\"\u{e9}\\\\\": 2}";
    for garbage in ["", "{", "[]", twice, quoted, r#"{"grant_type": 7}"#, null] {
        let request = token().header(header::CONTENT_TYPE, "application/json");
        assert_rejected(request.body(garbage.to_owned()), 400, "invalid_request").await;
    }
    let unknown_parameters = json!({
        "grant_type": "client_credentials", "client_id": OPERATOR, "client_secret": OPERATOR_SECRET,
        "scope": null, "audience": ["backhaul"], "retries": 3,
    });
    let (status, body) = send(token().json(&unknown_parameters)).await;
    assert_eq!(status, StatusCode::OK, "unknown parameters are ignored: {body}");
    assert_rejected(token(), 400, "invalid_request").await;
    assert_rejected(token().body(GRANT), 400, "invalid_request").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_basic_auth_gets_a_challenge() {
    let app = TestApp::start().await;
    let token = || app.request(Method::POST, "/oauth/token");
    let basic = |id: &str, fields: &str| form(token().basic_auth(id, Some("wrong")), fields);
    let twice = format!("{GRANT}&client_id={OPERATOR}&client_secret={OPERATOR_SECRET}");
    assert_rejected(basic(OPERATOR, GRANT), 401, "invalid_client").await;
    assert_rejected(basic("other", &format!("{GRANT}&client_id=o")), 400, "invalid_request").await;
    assert_rejected(basic(OPERATOR, &twice), 400, "invalid_request").await;
    assert_rejected(form(token().bearer_auth("x"), GRANT), 400, "invalid_request").await;
    let malformed = token().header(header::AUTHORIZATION, "Basic !");
    assert_rejected(form(malformed, GRANT), 400, "invalid_request").await;
    let response = basic(OPERATOR, GRANT).send().await.unwrap();
    assert!(response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Basic"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_id_is_treated_as_unknown() {
    let app = TestApp::start().await;
    let token = || app.request(Method::POST, "/oauth/token");
    let long = "x".repeat(256);
    for id in ["%00", "a%00b", "a%0Ab", &long] {
        let fields = format!("{GRANT}&client_id={id}&client_secret=wrong");
        assert_rejected(form(token(), &fields), 401, "invalid_client").await;
        let basic = form(token().basic_auth(id, Some("wrong")), GRANT);
        assert_rejected(basic, 401, "invalid_client").await;
    }
    // Ids and query parameters of the operator API are checked too.
    for path in [
        "/v1/merchants/%00",
        "/v1/merchants?after=%00",
        "/v1/clients?merchant=%00",
        "/v1/clients?after=%00",
        "/v1/audit?merchant=%00",
        "/v1/merchants?limit=0",
        "/v1/clients?limit=201",
        "/v1/audit?limit=-1",
    ] {
        let (status, _) = app.call(Method::GET, path, None).await;
        assert!(status.is_client_error(), "{path}: {status}");
    }
    for path in ["/v1/clients/%00/revoke", "/v1/clients/a%00/rotate"] {
        let (status, _) = app.call(Method::POST, path, Some(json!({}))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_an_address_are_limited_per_minute() {
    let app = TestApp::start_with(&[
        ("LIMITS__REQUESTS_PER_MINUTE", "4"),
        ("HTTP__TRUSTED_PROXIES", "127.0.0.1"),
    ])
    .await;
    let credentials = format!("client_id={OPERATOR}&client_secret={OPERATOR_SECRET}");
    let call = async |path: &str, address: &str| {
        let request = app.request(Method::POST, path).header("x-forwarded-for", address);
        form(request, &format!("{GRANT}&token=x&{credentials}")).send().await.unwrap()
    };
    for _ in 0..2 {
        for path in ["/oauth/token", "/oauth/revoke"] {
            assert_eq!(call(path, "192.0.2.1").await.status(), StatusCode::OK);
        }
    }
    let rejected = call("/oauth/token", "192.0.2.1").await;
    assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(rejected.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(call("/oauth/token", "192.0.2.2").await.status(), StatusCode::OK);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_request_without_memory_for_its_body_can_be_sent_again() {
    let settings = [
        ("HTTP__MAX_BODY", "65536"),
        // Memory for one body of the largest size.
        ("HTTP__MAX_INFLIGHT", "0"),
        ("HTTP__BODY_TIMEOUT", "2m"),
        ("HTTP__REQUEST_TIMEOUT", "2m"),
    ];
    let app = TestApp::start_with(&settings).await;
    let head = format!(
        "POST /v1/merchants HTTP/1.1\r\nHost: auth\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 65536\r\n\r\n",
        app.operator_token,
    );
    let waiting = RefCell::new(Vec::new());
    let rejected = eventually("the memory is used up", TIMEOUT, async || {
        // The service may reject a body that arrives while it reads another one.
        let connection = app.service.raw_connection(&head).await;
        waiting.borrow_mut().push(connection);
        let request = app.request(Method::POST, "/oauth/token");
        let response = request.json(&token_request(OPERATOR, OPERATOR_SECRET)).send().await;
        response.ok().filter(|response| response.status() != StatusCode::OK)
    })
    .await;
    assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(rejected.headers()[header::RETRY_AFTER], "1");
    let body: Value = rejected.json().await.unwrap();
    assert_eq!(body["error"], "temporarily_unavailable");
    drop(waiting);
    eventually("memory is free again", TIMEOUT, async || {
        let (status, _) = app.request_token(OPERATOR, OPERATOR_SECRET).await;
        (status == StatusCode::OK).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn announced_bodies_without_a_token_leave_memory_for_token_requests() {
    let settings = [
        ("HTTP__MAX_BODY", "32768"),
        // Memory for one body of the largest size.
        ("HTTP__MAX_INFLIGHT", "0"),
        ("HTTP__BODY_TIMEOUT", "5m"),
        ("HTTP__REQUEST_TIMEOUT", "5m"),
    ];
    let app = TestApp::start_with(&settings).await;
    let mut waiting = Vec::new();
    for path in ["/oauth/token", "/v1/sessions", "/v1/oidc/start", "/v1/invitations/show"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: auth\r\nContent-Type: application/json\r\n\
             Expect: 100-continue\r\nContent-Length: 32768\r\n\r\n{{"
        );
        let mut connection = app.service.raw_connection(&head).await;
        // The service waits for the body now.
        let mut status = [0; 12];
        connection.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 100", "{path}");
        waiting.push(connection);
        let (status, _) = app.request_token(OPERATOR, OPERATOR_SECRET).await;
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    drop(waiting);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_request_that_cannot_be_read_keeps_its_status() {
    let app = TestApp::start_with(&[("HTTP__BODY_TIMEOUT", "100ms")]).await;
    for path in ["/oauth/token", "/oauth/revoke", "/oauth/introspect"] {
        let large = app.request(Method::POST, path).body("x".repeat(2 * 1024 * 1024));
        let encoded = app.request(Method::POST, path).header("content-encoding", "br").body("x");
        for (request, expected) in
            [(large, StatusCode::PAYLOAD_TOO_LARGE), (encoded, StatusCode::UNSUPPORTED_MEDIA_TYPE)]
        {
            let (status, body) = send(request).await;
            assert_eq!((status, &body["error"]), (expected, &json!("invalid_request")), "{path}");
        }
        let head = format!("POST {path} HTTP/1.1\r\nHost: auth\r\nContent-Length: 9\r\n\r\na");
        let mut slow = app.service.raw_connection(&head).await;
        let mut response = [0; 12];
        slow.read_exact(&mut response).await.unwrap();
        assert_eq!(&response, b"HTTP/1.1 408", "{path}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_clients_and_wrong_secrets_are_indistinguishable() {
    // A busy machine computes in one step, too.
    let step = ("BRUTE_FORCE__FAILURE_LATENCY_STEP", "2s");
    let app = TestApp::start_with(&[NO_LOCKOUT[0], step]).await;
    let mut times = [Vec::new(), Vec::new()];
    let mut bodies = [Value::Null, Value::Null];
    for _ in 0..5 {
        for (index, client) in [OPERATOR, "unknown-client"].into_iter().enumerate() {
            let started = Instant::now();
            let (status, body) = app.request_token(client, "bhs_wrong").await;
            times[index].push(started.elapsed());
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            bodies[index] = body;
        }
    }
    assert_eq!(bodies[0], bodies[1]);
    let [known, unknown] = times.map(|mut times| {
        times.sort_unstable();
        times[2].as_secs_f64()
    });
    assert!((known / unknown - 1.0).abs() < 0.2, "known {known} s, unknown {unknown} s");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_failures_lock_out_one_client_only() {
    let app = TestApp::start_with(&[("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3")]).await;
    let (id, secret) = app.create_client(None, &["warehouse"]).await;
    for _ in 0..4 {
        assert_eq!(app.request_token(&id, "guess").await.0, StatusCode::UNAUTHORIZED);
    }
    let request = app.request(Method::POST, "/oauth/token").json(&token_request(&id, &secret));
    let rejected = request.send().await.unwrap();
    assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(rejected.headers()[header::RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    app.token(OPERATOR, OPERATOR_SECRET).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_with_many_clients_lock_out_nobody() {
    let settings = [("BRUTE_FORCE__ACCOUNT_FAILURES_PER_MINUTE", "3")];
    let app = TestApp::start_with(&settings).await;
    let mut guesses = tokio::task::JoinSet::new();
    for guess in 0..70 {
        let credentials = token_request(&format!("client-{guess}"), "guess");
        guesses.spawn(app.request(Method::POST, "/oauth/token").json(&credentials).send());
    }
    for response in guesses.join_all().await {
        assert_eq!(response.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    app.token(OPERATOR, OPERATOR_SECRET).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_contains_the_endpoint_urls() {
    let app = TestApp::start().await;
    let (status, metadata) =
        send(app.request(Method::GET, "/.well-known/oauth-authorization-server")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(metadata["issuer"], "https://auth.test");
    assert_eq!(metadata["token_endpoint"], "https://auth.test/oauth/token");
    assert_eq!(metadata["jwks_uri"], "https://auth.test/.well-known/jwks.json");
    assert_eq!(
        metadata["token_endpoint_auth_methods_supported"],
        json!(["client_secret_basic", "client_secret_post"])
    );
}
