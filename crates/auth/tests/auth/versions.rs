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
