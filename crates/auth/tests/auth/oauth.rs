//! Tokens: getting them, being refused them, and keys that change underneath.

use std::time::Instant;

use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};

use crate::{Auth, OPERATOR, OPERATOR_SECRET, SOON, send};

fn form(request: RequestBuilder, fields: &str) -> RequestBuilder {
    request
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(fields.to_owned())
}

fn kid(token: &str) -> String {
    use base64::Engine as _;
    let header = token.split('.').next().unwrap();
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_granted_in_every_way_that_clients_ask() {
    let auth = Auth::start().await;
    auth.add_merchant("acme").await;
    let (id, secret) = auth.add_client(Some("acme"), &["returns", "orders"]).await;
    let token = || auth.request(Method::POST, "/oauth/token");
    let body =
        json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret});
    let credentials = format!("client_id={id}&client_secret={secret}");
    for request in [
        token().json(&body),
        form(token(), &format!("grant_type=client_credentials&{credentials}")),
        form(token().basic_auth(&id, Some(&secret)), "grant_type=client_credentials"),
        form(
            token().basic_auth(&id, Some(&secret)),
            &format!("grant_type=client_credentials&client_id={id}"),
        ),
        token().basic_auth(&id, Some(&secret)).json(&json!({"grant_type": "client_credentials"})),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store");
        let granted: Value = answer.json().await.unwrap();
        let mut fields: Vec<_> = granted.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["access_token", "created_at", "expires_in", "scope", "token_type"]);
        assert_eq!(granted["expires_in"], 90_000);
        assert_eq!(granted["scope"], "orders returns");
        assert_eq!(granted["token_type"], "Bearer");
        assert!(granted["created_at"].is_i64());
    }
    let fewer = format!("grant_type=client_credentials&scope=orders&{credentials}");
    let (status, granted) = send(form(token(), &fewer)).await;
    assert_eq!((status, &granted["scope"]), (StatusCode::OK, &json!("orders")));
    auth.stop().await;
}

const PATIENT: [(&str, &str); 2] =
    [("BRUTE_FORCE__PER_CLIENT", "1000"), ("BRUTE_FORCE__PER_ADDRESS", "1000")];
const GRANT: &str = "grant_type=client_credentials";

async fn refused(request: RequestBuilder, status: u16, error: &str) {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store");
    let actual = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    assert_eq!((actual, body["error"].as_str().unwrap()), (status, error), "{body}");
    assert!(body["error_description"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_token_request_gets_the_oauth_error_it_deserves() {
    let auth = Auth::with(&PATIENT).await;
    let token = || auth.request(Method::POST, "/oauth/token");
    let good = format!("client_id={OPERATOR}&client_secret={OPERATOR_SECRET}");
    for (fields, status, error) in [
        (good.clone(), 400, "invalid_request"),
        (format!("grant_type=&{good}"), 400, "invalid_request"),
        (format!("{GRANT}&{GRANT}&{good}"), 400, "invalid_request"),
        (format!("{GRANT}&client_id={OPERATOR}"), 400, "invalid_request"),
        (format!("{GRANT}&client_secret=x"), 400, "invalid_request"),
        (format!("grant_type=password&{good}"), 400, "unsupported_grant_type"),
        (format!("{GRANT}&scope=orders&{good}"), 400, "invalid_scope"),
        (format!("{GRANT}&scope=magic&{good}"), 400, "invalid_scope"),
        (GRANT.to_owned(), 401, "invalid_client"),
        (format!("{GRANT}&client_id={OPERATOR}&client_secret=wrong"), 401, "invalid_client"),
        (format!("{GRANT}&client_id=nobody&client_secret=wrong"), 401, "invalid_client"),
    ] {
        refused(form(token(), &fields), status, error).await;
    }
    let null = "{\"grant_type\": \"\u{0}\"}";
    let twice = r#"{"grant_type": "a", "grant_type": "b"}"#;
    let huge = "x".repeat(2_000_000);
    for garbage in ["", "{", "[]", twice, r#"{"grant_type": 7}"#, null, &huge] {
        let request = token().header(header::CONTENT_TYPE, "application/json");
        refused(request.body(garbage.to_owned()), 400, "invalid_request").await;
    }
    let given = json!({
        "grant_type": "client_credentials", "client_id": OPERATOR, "client_secret": OPERATOR_SECRET,
        "scope": null, "audience": ["backhaul"], "retries": 3,
    });
    let (status, granted) = send(token().json(&given)).await;
    assert_eq!(status, StatusCode::OK, "what nobody reads is nobody's fault: {granted}");
    refused(token(), 400, "invalid_request").await;
    refused(token().body(GRANT), 400, "invalid_request").await;
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn basic_credentials_are_refused_as_http_asks() {
    let auth = Auth::with(&PATIENT).await;
    let token = || auth.request(Method::POST, "/oauth/token");
    let basic = |id: &str, fields: &str| form(token().basic_auth(id, Some("wrong")), fields);
    let twice = format!("{GRANT}&client_id={OPERATOR}&client_secret={OPERATOR_SECRET}");
    refused(basic(OPERATOR, GRANT), 401, "invalid_client").await;
    refused(basic("other", &format!("{GRANT}&client_id=o")), 400, "invalid_request").await;
    refused(basic(OPERATOR, &twice), 400, "invalid_request").await;
    refused(form(token().bearer_auth("x"), GRANT), 400, "invalid_request").await;
    let broken = token().header(header::AUTHORIZATION, "Basic !");
    refused(form(broken, GRANT), 400, "invalid_request").await;
    let answer = basic(OPERATOR, GRANT).send().await.unwrap();
    assert!(answer.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Basic"));
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_no_client_can_have_is_an_unknown_client() {
    let auth = Auth::with(&PATIENT).await;
    let token = || auth.request(Method::POST, "/oauth/token");
    let long = "x".repeat(256);
    for id in ["%00", "a%00b", "a%0Ab", &long] {
        let fields = format!("{GRANT}&client_id={id}&client_secret=wrong");
        refused(form(token(), &fields), 401, "invalid_client").await;
        let basic = form(token().basic_auth(id, Some("wrong")), GRANT);
        refused(basic, 401, "invalid_client").await;
    }
    // The same in the operator's API, where ids and pages stand in the address.
    for path in [
        "/v1/merchants/%00",
        "/v1/merchants?after=%00",
        "/v1/clients?merchant=%00",
        "/v1/clients?after=%00",
        "/v1/audit?merchant=%00",
        "/v1/merchants?limit=0",
        "/v1/clients?limit=501",
        "/v1/audit?limit=-1",
    ] {
        let (status, _) = auth.call(Method::GET, path, None).await;
        assert!(status.is_client_error(), "{path}: {status}");
    }
    for path in ["/v1/clients/%00/revoke", "/v1/clients/a%00/rotate"] {
        let (status, _) = auth.call(Method::POST, path, Some(json!({}))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_gets_and_revokes_so_many_tokens_a_minute() {
    let auth =
        Auth::with(&[("LIMITS__REQUESTS_PER_MINUTE", "4"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")])
            .await;
    let credentials = format!("client_id={OPERATOR}&client_secret={OPERATOR_SECRET}");
    let ask = async |path: &str, address: &str| {
        let request = auth.request(Method::POST, path).header("x-forwarded-for", address);
        form(request, &format!("{GRANT}&token=x&{credentials}")).send().await.unwrap()
    };
    for _ in 0..2 {
        for path in ["/oauth/token", "/oauth/revoke"] {
            assert_eq!(ask(path, "192.0.2.1").await.status(), StatusCode::OK);
        }
    }
    let refused = ask("/oauth/token", "192.0.2.1").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(ask("/oauth/token", "192.0.2.2").await.status(), StatusCode::OK);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_client_and_a_wrong_secret_look_the_same_and_take_as_long() {
    let auth = Auth::with(&PATIENT).await;
    let mut times = [Vec::new(), Vec::new()];
    let mut answers = [Value::Null, Value::Null];
    for _ in 0..15 {
        for (index, client) in [OPERATOR, "nobody-at-all"].into_iter().enumerate() {
            let started = Instant::now();
            let (status, body) = auth.grant(client, "bhs_wrong").await;
            times[index].push(started.elapsed());
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            answers[index] = body;
        }
    }
    assert_eq!(answers[0], answers[1]);
    let [known, unknown] = times.map(|mut times| {
        times.sort_unstable();
        times[7].as_secs_f64()
    });
    assert!((known / unknown - 1.0).abs() < 0.2, "known {known} s, unknown {unknown} s");
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slowed_down_and_other_clients_are_not() {
    let auth =
        Auth::with(&[("BRUTE_FORCE__PER_CLIENT", "3"), ("BRUTE_FORCE__PER_ADDRESS", "1000")]).await;
    let (id, secret) = auth.add_client(None, &["warehouse"]).await;
    for _ in 0..4 {
        assert_eq!(auth.grant(&id, "guess").await.0, StatusCode::UNAUTHORIZED);
    }
    let body =
        json!({"grant_type": "client_credentials", "client_id": id, "client_secret": secret});
    let refused = auth.request(Method::POST, "/oauth/token").json(&body).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers()[header::RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    auth.token(OPERATOR, OPERATOR_SECRET).await;
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_guesses_at_many_clients_has_to_wait_for_all() {
    let auth =
        Auth::with(&[("BRUTE_FORCE__PER_CLIENT", "3"), ("BRUTE_FORCE__PER_ADDRESS", "5")]).await;
    for guess in 0..6 {
        assert_eq!(
            auth.grant(&format!("client-{guess}"), "guess").await.0,
            StatusCode::UNAUTHORIZED
        );
    }
    assert_eq!(auth.grant("client-7", "guess").await.0, StatusCode::TOO_MANY_REQUESTS);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotate_without_anyone_noticing() {
    let auth = Auth::start().await;
    let old = auth.token(OPERATOR, OPERATOR_SECRET).await;
    let (status, made) = auth.call(Method::POST, "/v1/signing_keys/rotate", None).await;
    assert_eq!(status, StatusCode::CREATED);
    let new = auth.token(OPERATOR, OPERATOR_SECRET).await;
    assert_ne!(kid(&old), kid(&new));
    assert_eq!(kid(&new), made["id"].as_str().unwrap());
    for token in [&old, &new] {
        assert_eq!(auth.call_as(token, Method::GET, "/v1/merchants", None).await.0, StatusCode::OK);
    }
    let (_, keys) = send(auth.request(Method::GET, "/.well-known/jwks.json")).await;
    let ids: Vec<_> =
        keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap()).collect();
    assert_eq!(ids, [kid(&old), kid(&new)]);
    assert!(
        keys["keys"].as_array().unwrap().iter().all(|key| key.get("d").is_none()),
        "private keys are published"
    );
    auth.stop().await;
}

/// The subjects and actors of what is on record of signing keys, newest first.
async fn keys_on_record(auth: &Auth, token: &str, action: &str) -> Vec<(Value, Value)> {
    let (_, audit) = auth.call_as(token, Method::GET, "/v1/audit", None).await;
    let records = audit["records"].as_array().unwrap();
    let fitting = records.iter().filter(|record| record["action"] == action);
    fitting.map(|record| (record["subject"].clone(), record["actor"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_is_on_record_with_who_made_and_who_removed_it() {
    let auth = Auth::start().await;
    let first = json!(format!("signing_key/{}", kid(&auth.operator)));
    let (_, made) = auth.call(Method::POST, "/v1/signing_keys/rotate", None).await;
    let second = json!(format!("signing_key/{}", made["id"].as_str().unwrap()));
    let token = auth.token(OPERATOR, OPERATOR_SECRET).await;
    let made = keys_on_record(&auth, &token, "signing_key.made").await;
    assert_eq!(made, [(second, json!(OPERATOR)), (first.clone(), json!("keyring"))]);
    assert_eq!(keys_on_record(&auth, &token, "signing_key.removed").await, []);

    // Longer ago than any token lives.
    let aged = "UPDATE signing_keys SET activates_at = activates_at - INTERVAL '26 hours'";
    auth.service.database.execute_raw(aged).await;
    testkit::eventually("one key is published", SOON, async || {
        let (_, keys) = send(auth.request(Method::GET, "/.well-known/jwks.json")).await;
        (keys["keys"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    let removed = keys_on_record(&auth, &token, "signing_key.removed").await;
    assert_eq!(removed, [(first, json!("keyring"))]);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_operators_secret_is_changed_where_it_is_configured() {
    let auth = Auth::start().await;
    let path = format!("/v1/clients/{OPERATOR}/rotate");
    let (status, refused) = auth.call(Method::POST, &path, Some(json!({}))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(refused.to_string().contains("bootstrap.client_secret"), "{refused}");
    assert_eq!(auth.grant(OPERATOR, OPERATOR_SECRET).await.0, StatusCode::OK);
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_published_before_it_signs() {
    let auth = Auth::with(&[("KEYS__PUBLISH_AHEAD", "1h")]).await;
    let before = auth.token(OPERATOR, OPERATOR_SECRET).await;
    assert_eq!(
        auth.call(Method::POST, "/v1/signing_keys/rotate", None).await.0,
        StatusCode::CREATED
    );
    let (_, keys) = send(auth.request(Method::GET, "/.well-known/jwks.json")).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    assert_eq!(kid(&auth.token(OPERATOR, OPERATOR_SECRET).await), kid(&before));
    auth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_says_where_everything_is() {
    let auth = Auth::start().await;
    let (status, metadata) =
        send(auth.request(Method::GET, "/.well-known/oauth-authorization-server")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(metadata["issuer"], "https://auth.test");
    assert_eq!(metadata["token_endpoint"], "https://auth.test/oauth/token");
    assert_eq!(metadata["jwks_uri"], "https://auth.test/.well-known/jwks.json");
    assert_eq!(
        metadata["token_endpoint_auth_methods_supported"],
        json!(["client_secret_basic", "client_secret_post"])
    );
    auth.stop().await;
}
