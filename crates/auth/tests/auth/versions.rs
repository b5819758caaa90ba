//! Tests of changes that name the version of the merchant.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::{TestApp, send};

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_an_old_version_is_refused() {
    let app = TestApp::start().await;
    let version = app.create_merchant("acme").await["version"].as_i64().unwrap();
    let change = async |method: Method, path: &str, body: Value, version: &str| {
        let request = app.request(method, path).bearer_auth(&app.operator_token);
        send(request.header("if-match", version).json(&body)).await
    };
    let rename = async |name: &str, version: &str| {
        change(Method::PATCH, "/v1/merchants/acme", json!({"name": name}), version).await
    };
    let (status, renamed) = rename("Acme 1", &format!("\"{version}\"")).await;
    assert_eq!(status, StatusCode::OK, "{renamed}");
    for old in [format!("\"{version}\""), "other".to_owned()] {
        let (status, body) = rename("Acme 2", &old).await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{body}");
        assert_eq!(body["code"], "changed");
        let endpoint = json!({"url": "https://acme.example/rmas"});
        let path = "/v1/merchants/acme/endpoints/rma";
        let (status, body) = change(Method::PUT, path, endpoint, &old).await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{body}");
        let path = "/v1/merchants/acme/warehouses/reno";
        let (status, body) = change(Method::PUT, path, json!({}), &old).await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{body}");
    }
    let endpoint = json!({"url": "https://acme.example/rmas"});
    for (path, body) in [
        ("/v1/merchants/acme/endpoints/rma", endpoint),
        ("/v1/merchants/acme/warehouses/reno", json!({})),
    ] {
        let (_, before) = app.call(Method::GET, "/v1/merchants/acme", None).await;
        let (status, set) = app.call(Method::PUT, path, Some(body.clone())).await;
        assert_eq!(status, StatusCode::OK, "{set}");
        let (_, after) = app.call(Method::GET, "/v1/merchants/acme", None).await;
        for (version, expected) in [
            (&before["version"], StatusCode::PRECONDITION_FAILED),
            (&after["version"], StatusCode::NO_CONTENT),
        ] {
            let delete = app.request(Method::DELETE, path).bearer_auth(&app.operator_token);
            let (status, body) = send(delete.header("if-match", version.to_string())).await;
            assert_eq!(status, expected, "{path} {body}");
        }
    }
    assert_eq!(rename("Acme 3", "*").await.0, StatusCode::OK);
    let (_, merchant) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(merchant["name"], "Acme 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_only_creates_replaces_nothing() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    for (path, message) in [
        ("endpoints/rma", "already has an endpoint for rma"),
        ("warehouses/reno", "already has a warehouse reno"),
    ] {
        let body = |name: &str| match path {
            "endpoints/rma" => json!({"url": format!("https://acme.example/{name}")}),
            _ => json!({"external_identifier": name}),
        };
        let path = format!("/v1/merchants/acme/{path}");
        let create = async |name: &str| {
            let request = app.request(Method::PUT, &path).bearer_auth(&app.operator_token);
            send(request.header("if-none-match", "*").json(&body(name))).await
        };
        let (status, created) = create("first").await;
        assert_eq!(status, StatusCode::OK, "{created}");
        let (_, before) = app.call(Method::GET, "/v1/merchants/acme", None).await;
        let (status, refused) = create("second").await;
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{refused}");
        assert_eq!(refused["code"], "exists");
        let text = refused["message"].as_str().unwrap();
        assert!(text.ends_with(message), "{text}");
        let (_, after) = app.call(Method::GET, "/v1/merchants/acme", None).await;
        assert_eq!(after, before);
        let (status, replaced) = app.call(Method::PUT, &path, Some(body("third"))).await;
        assert_eq!(status, StatusCode::OK, "{replaced}");
    }
}
