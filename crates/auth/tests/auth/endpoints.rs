//! Tests of endpoints and their signing secrets.

use chrono::TimeDelta;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::app::{TestApp, send};
use crate::merchants::published_version;
use crate::person::TestClock;

const ENDPOINT: &str = "/v1/merchants/acme/endpoints/rma";
const VARIANTS: &str = "/v1/merchants/acme/endpoints/exchange-variants";

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_secrets_are_returned_once_stored_encrypted_and_rotated() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let endpoint = json!({"url": "https://acme.example/rmas", "headers": {"X-Shop": "1"},
        "authentication": {"kind": "basic", "username": "u", "password": "open-sesame"}, "timeout_ms": 5000});
    let (status, created) = app.call(Method::PUT, ENDPOINT, Some(endpoint.clone())).await;
    assert_eq!(status, StatusCode::OK, "{created}");
    let secret = created["signing_secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(created["endpoint"]["authentication"]["password"], "********");
    let (_, replaced) = app.call(Method::PUT, ENDPOINT, Some(endpoint)).await;
    assert_eq!(replaced.get("signing_secret"), None);

    let path = format!("{ENDPOINT}/rotate_secret");
    let rotate = async |overlap: u32| {
        let body = json!({"overlap_seconds": overlap});
        app.call_with_key(&app.operator_token, &app.service.own("rotation"), &path, body).await
    };
    let (status, rotated) = rotate(60).await;
    assert_eq!(status, StatusCode::OK, "{rotated}");
    assert_eq!(rotate(60).await, (status, rotated.clone()), "a used key gets the first response");
    assert_eq!(rotate(61).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_ne!(rotated["signing_secret"].as_str().unwrap(), secret);
    let secrets = rotated["endpoint"]["signing_secrets"].as_array().unwrap();
    assert_eq!(secrets.len(), 2);
    assert!(secrets[0]["expires_at"].is_null() && secrets[1]["expires_at"].is_string());

    let (_, paused) = app.call(Method::POST, &format!("{ENDPOINT}/pause"), None).await;
    assert_eq!(paused["endpoints"]["rma"]["paused"], true);
    let (_, resumed) = app.call(Method::POST, &format!("{ENDPOINT}/resume"), None).await;
    assert_eq!(resumed["endpoints"]["rma"]["paused"], false);

    let event = published_version(&app, &resumed["version"]).await.to_string();
    assert!(!event.contains("open-sesame") && !event.contains("whsec_"), "a secret is in an event");
    let records = format!("{:?}", app.audit_records().await);
    assert!(!records.contains("open-sesame"), "a secret is in the audit log");

    assert_eq!(app.call(Method::DELETE, ENDPOINT, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(app.call(Method::DELETE, ENDPOINT, None).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_published_once() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let endpoint = json!({"url": "https://acme.example/rmas"});
    app.call(Method::PUT, ENDPOINT, Some(endpoint)).await;
    for action in ["pause", "pause", "resume"] {
        let (status, body) = app.call(Method::POST, &format!("{ENDPOINT}/{action}"), None).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    let events = app.events_in("rma-engine.endpoint.paused.v1", 1).await;
    assert_eq!((&events[0]["merchant"], &events[0]["interface"]), (&json!("acme"), &json!("rma")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_sets_the_same_endpoint() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let set = async |password: &str| {
        let authentication = json!({"kind": "basic", "username": "u", "password": password});
        let body = json!({"url": "https://acme.example/rmas", "authentication": authentication});
        let request = app.request(Method::PUT, ENDPOINT).bearer_auth(&app.operator_token);
        let key = app.service.own("set-endpoint");
        send(request.header("idempotency-key", key).json(&body)).await
    };
    let (first, second) = tokio::join!(set("open-sesame"), set("open-sesame"));
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    assert!(first.1["signing_secret"].as_str().unwrap().starts_with("whsec_"), "{}", first.1);
    assert_eq!(first, second);
    let (status, refused) = set("another").await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let records = format!("{:?}", app.audit_records().await);
    assert_eq!(records.matches("endpoint.set").count(), 1, "{records}");
    assert!(!records.contains("open-sesame"), "{records}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_can_keep_the_queries_of_urls() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let endpoint = |url: &str, token_url: &str| {
        json!({"url": url, "timeout_ms": 5000, "authentication": {"kind": "oauth2",
            "token_url": token_url, "client_id": "c", "client_secret": "s"}})
    };
    let set = async |path: &str, url: &str, token_url: &str| {
        let (status, set) = app.call(Method::PUT, path, Some(endpoint(url, token_url))).await;
        assert_eq!(status, StatusCode::OK, "{set}");
        let endpoint = &set["endpoint"];
        (endpoint["url"].clone(), endpoint["authentication"]["token_url"].clone())
    };
    let url = "https://acme.example/rmas";
    let token_url = "https://id.acme.example/token";
    let hidden = (json!(format!("{url}?********")), json!(format!("{token_url}?********")));
    let with_key = format!("{url}?key=abc");
    let with_tenant = format!("{token_url}?tenant=1");
    assert_eq!(set(ENDPOINT, &with_key, &with_tenant).await, hidden);
    let keep = format!("{ENDPOINT}?keep_queries=true");
    assert_eq!(set(&keep, url, token_url).await, hidden);
    let other = "https://acme.example/other";
    assert_eq!(set(&keep, other, token_url).await, (json!(other), hidden.1.clone()));
    assert_eq!(set(ENDPOINT, other, token_url).await, (json!(other), json!(token_url)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signing_secret_in_its_overlap_ends_only_with_force() {
    let clock = TestClock::new();
    let app = TestApp::start_with_clock(clock.clock(), &[]).await;
    app.create_merchant("acme").await;
    let url = json!({"url": "https://acme.example/rmas"});
    let (_, created) = app.call(Method::PUT, ENDPOINT, Some(url)).await;
    let first = created["endpoint"]["signing_secrets"][0]["id"].clone();
    let path = format!("{ENDPOINT}/rotate_secret");
    let rotate = async |body: Value| app.call(Method::POST, &path, Some(body)).await;
    let ids = |rotated: &Value| -> Vec<Value> {
        let secrets = rotated["endpoint"]["signing_secrets"].as_array().unwrap();
        secrets.iter().map(|secret| secret["id"].clone()).collect()
    };
    let (status, rotated) = rotate(json!({"overlap_seconds": 3600})).await;
    assert_eq!(status, StatusCode::OK, "{rotated}");
    let second = ids(&rotated)[0].clone();
    assert_eq!(ids(&rotated), [second.clone(), first.clone()]);

    let (status, refused) = rotate(json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT, "the first secret still signs: {refused}");
    assert!(refused["message"].as_str().unwrap().contains("is still in use"), "{refused}");
    assert_eq!(refused["code"], "secret_in_use", "the console offers force for this code only");
    let (_, list) = app.call(Method::GET, "/v1/merchants/acme/endpoints", None).await;
    let secrets = list["endpoints"]["rma"]["signing_secrets"].as_array().unwrap();
    assert_eq!((&secrets[0]["id"], &secrets[1]["id"]), (&second, &first), "nothing changed");

    let (status, forced) = rotate(json!({"overlap_seconds": 3600, "force": true})).await;
    assert_eq!(status, StatusCode::OK, "{forced}");
    let third = ids(&forced)[0].clone();
    assert_eq!(ids(&forced), [third.clone(), second]);

    clock.advance(TimeDelta::hours(1));
    let (status, rotated) = rotate(json!({})).await;
    assert_eq!(status, StatusCode::OK, "the overlap has ended: {rotated}");
    assert_eq!(ids(&rotated)[1], third);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_endpoints_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let (status, body) = app.call(Method::PUT, ENDPOINT, Some(json!({}))).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    let no_placeholder = json!({"url": "https://acme.example/variants"});
    let (status, body) = app.call(Method::PUT, VARIANTS, Some(no_placeholder)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let valid = json!({"url": "https://acme.example/sku/{variant_identifier}/variants"});
    let (status, body) = app.call(Method::PUT, VARIANTS, Some(valid)).await;
    assert_eq!((status, body.get("signing_secret")), (StatusCode::OK, None), "{body}");
    let rotate = format!("{VARIANTS}/rotate_secret");
    let (status, body) = app.call(Method::POST, &rotate, Some(json!({}))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    let unknown_interface = "/v1/merchants/acme/endpoints/telegram";
    let (status, _) = app.call(Method::PUT, unknown_interface, Some(json!({}))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_needs_its_own_private_key_and_shows_when_it_expires() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let pair = || rcgen::generate_simple_self_signed(["backhaul.example".to_owned()]).unwrap();
    let (own, other) = (pair(), pair());
    let body = |certificate: &str, private_key: &str| {
        json!({"url": "https://acme.example/rmas", "authentication": {
            "kind": "client_certificate", "certificate": certificate, "private_key": private_key}})
    };
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let foreign = body(&certificate, &other.signing_key.serialize_pem());
    assert_eq!(rejected_fields(&app, foreign).await, ["$.authentication.private_key"]);
    let both = body(&format!("{certificate}{key}"), &key);
    assert_eq!(rejected_fields(&app, both).await, ["$.authentication.certificate"]);

    let (status, set) = app.call(Method::PUT, ENDPOINT, Some(body(&certificate, &key))).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    let authentication = &set["endpoint"]["authentication"];
    assert_eq!(authentication["certificate"].as_str().unwrap(), certificate.trim());
    assert_eq!(authentication["private_key"], "********");
    assert!(set["endpoint"]["certificate_expires_at"].is_string(), "{set}");
    let (_, merchant) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    let event = published_version(&app, &merchant["version"]).await.to_string();
    assert!(!event.contains("PRIVATE KEY"), "the key is in an event");
    let records = format!("{:?}", app.audit_records().await);
    assert!(!records.contains("PRIVATE KEY"), "the key is in the audit log");
    let none = json!({"url": "https://acme.example/rmas"});
    let (_, set) = app.call(Method::PUT, ENDPOINT, Some(none)).await;
    assert!(set["endpoint"]["certificate_expires_at"].is_null(), "{set}");
}

/// The fields that auth rejects in the body of a request to set the endpoint.
async fn rejected_fields(app: &TestApp, body: Value) -> Vec<String> {
    let (status, response) = app.call(Method::PUT, ENDPOINT, Some(body.clone())).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {response}");
    let errors = response["errors"].as_array().unwrap();
    errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
}

fn with_token_url(token_url: &str) -> Value {
    json!({"url": "https://acme.example/rmas", "authentication": {"kind": "oauth2",
        "token_url": token_url, "client_id": "backhaul", "client_secret": "secret"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_that_delivery_would_refuse_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    for url in [
        "http://acme.example/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://10.1.2.3/x",
        "https://169.254.1.1/x",
        "https://169.254.169.254/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://0x7f000001/x",
        "https://localhost/x",
        "https://shop.localhost./x",
        "https://metadata.google.internal/x",
    ] {
        assert_eq!(rejected_fields(&app, json!({"url": url})).await, ["$.url"], "{url}");
        let fields = rejected_fields(&app, with_token_url(url)).await;
        assert_eq!(fields, ["$.authentication.token_url"], "{url}");
        let base_url = Some(json!({"base_url": url}));
        let (status, body) = app.call(Method::PATCH, "/v1/merchants/acme", base_url).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{url}");
        assert_eq!(body["errors"][0]["field"], "$.base_url");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_in_allowed_networks_are_accepted() {
    let app = TestApp::start_with(&[
        ("DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.0/8"),
    ])
    .await;
    app.create_merchant("acme").await;
    for url in ["http://127.0.0.1:8099/rmas", "http://localhost:8099/rmas", "http://a.example/x"] {
        let (status, body) = app.call(Method::PUT, ENDPOINT, Some(json!({"url": url}))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    assert_eq!(rejected_fields(&app, json!({"url": "http://10.1.2.3/x"})).await, ["$.url"]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_and_oversized_settings_are_rejected() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    for url in [
        "https:///x",
        r"https:\\acme.example\x",
        r"https://acme.example\x",
        "https://user@acme.example/x",
        "https://@acme.example/x",
        "https://acme.example/../../x",
        "https://acme.example/%2e%2e/x",
    ] {
        assert_eq!(rejected_fields(&app, json!({"url": url})).await, ["$.url"], "{url}");
        let fields = rejected_fields(&app, with_token_url(url)).await;
        assert_eq!(fields, ["$.authentication.token_url"], "{url}");
    }
    for path in ["/../../x", "/a/%2E%2e/x", "/..%2fx", "/./x", r"/..\x", "x"] {
        assert_eq!(rejected_fields(&app, json!({"path": path})).await, ["$.path"], "{path}");
    }
    let headers = |count: usize| -> Map<String, Value> {
        (0..count).map(|number| (format!("x-{number}"), json!("value"))).collect()
    };
    let with_headers =
        |headers: Value| json!({"url": "https://acme.example/x", "headers": headers});
    let (status, body) =
        app.call(Method::PUT, ENDPOINT, Some(with_headers(headers(50).into()))).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let long_name = "x".repeat(101);
    let long_value = "x".repeat(1001);
    for (headers, field) in [
        (headers(51).into(), "$.headers".to_owned()),
        (json!({(long_name.clone()): "x"}), format!("$.headers.{long_name}")),
        (json!({"x": long_value}), "$.headers.x".to_owned()),
        (json!({"Expect": "x"}), "$.headers.Expect".to_owned()),
        (json!({"tracestate": "x"}), "$.headers.tracestate".to_owned()),
    ] {
        assert_eq!(rejected_fields(&app, with_headers(headers)).await, [field]);
    }
    for (authentication, field) in [
        (json!({"kind": "bearer", "token": ""}), "token"),
        (json!({"kind": "bearer", "token": " "}), "token"),
        (json!({"kind": "api_key", "header": "x-key", "key": ""}), "key"),
        (json!({"kind": "basic", "username": "a:b", "password": "p"}), "username"),
    ] {
        let body = json!({"url": "https://acme.example/x", "authentication": authentication});
        assert_eq!(rejected_fields(&app, body).await, [format!("$.authentication.{field}")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn header_values_and_url_queries_are_secrets() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let endpoint = json!({"url": "https://acme.example/rmas?key=open-sesame",
        "headers": {"X-Token": "open-sesame"},
        "authentication": {"kind": "oauth2", "token_url": "https://id.acme.example/token?k=open-sesame",
            "client_id": "backhaul", "client_secret": "open-sesame"}});
    let (status, set) = app.call(Method::PUT, ENDPOINT, Some(endpoint)).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    assert_eq!(set["endpoint"]["url"], "https://acme.example/rmas?********");
    assert_eq!(set["endpoint"]["headers"], json!({"x-token": "********"}));
    let token_url = &set["endpoint"]["authentication"]["token_url"];
    assert_eq!(*token_url, "https://id.acme.example/token?********");

    let record = &app.audit_records().await[0];
    assert_eq!(record["action"], "endpoint.set");
    assert_eq!(record["detail"]["url"], "https://acme.example/rmas?********");
    assert_eq!(record["detail"]["headers"], json!({"x-token": "********"}));

    let (_, merchant) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    let event = published_version(&app, &merchant["version"]).await;
    let url = event["endpoints"]["rma"]["url"].as_str().unwrap();
    assert!(url.starts_with("https://acme.example/rmas?test."), "{url}");
    for text in [merchant.to_string(), event.to_string(), record.to_string()] {
        assert!(!text.contains("open-sesame"), "{text}");
    }
    let stored = "SELECT count(*) FROM merchants WHERE document::text LIKE '%open-sesame%'";
    assert_eq!(app.service.database.count(stored).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placeholder_does_not_overwrite_the_secret_that_it_stands_for() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let endpoint = json!({"url": "https://acme.example/rmas?key=open-sesame",
        "headers": {"x-token": "open-sesame"},
        "authentication": {"kind": "oauth2", "token_url": "https://id.acme.example/token?k=open-sesame",
            "client_id": "backhaul", "client_secret": "open-sesame"}});
    let (_, set) = app.call(Method::PUT, ENDPOINT, Some(endpoint)).await;
    let changes = app.audit_records().await.len();
    let shown = &set["endpoint"];
    let copied = json!({"url": shown["url"], "headers": shown["headers"],
        "authentication": shown["authentication"]});
    assert_eq!(
        rejected_fields(&app, copied).await,
        [
            "$.url",
            "$.headers['x-token']",
            "$.authentication.token_url",
            "$.authentication.client_secret"
        ]
    );
    assert_eq!(app.audit_records().await.len(), changes);
}
