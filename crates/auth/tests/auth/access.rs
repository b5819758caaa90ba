//! Tests of the scopes `read` and `manage`: who may do what, and to which merchant.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::{OPERATOR, TestApp};

const ENDPOINT: &str = "/v1/merchants/acme/endpoints/rma";

/// The callers, in the order of the columns of [`RULES`].
const CALLERS: [(Option<&str>, &[&str]); 6] = [
    (None, &["operator"]),
    (Some("acme"), &["manage"]),
    (Some("acme"), &["read"]),
    (None, &["read", "replay"]),
    (Some("acme"), &["orders", "returns", "replay"]),
    (Some("rival"), &["read", "manage"]),
];

/// Requests about acme, and the status that each caller gets. `{client}` is a client of acme.
#[rustfmt::skip]
const RULES: [(Method, &str, [u16; 6]); 16] = [
    //                                                    operator manage read support none rival
    (Method::GET, "/v1/merchants/acme",                       [200, 200, 200, 200, 200, 404]),
    (Method::GET, "/v1/merchants",                            [200, 200, 200, 200, 403, 200]),
    (Method::PATCH, "/v1/merchants/acme",                     [200, 403, 403, 403, 403, 403]),
    (Method::POST, "/v1/signing_keys/rotate",                 [201, 403, 403, 403, 403, 403]),
    (Method::GET, "/v1/merchants/acme/endpoints",             [200, 200, 200, 200, 403, 404]),
    (Method::PUT, ENDPOINT,                                   [200, 200, 403, 403, 403, 404]),
    (Method::POST, "/v1/merchants/acme/endpoints/rma/pause",  [200, 200, 403, 403, 403, 404]),
    (Method::POST, "/v1/merchants/acme/endpoints/rma/resume", [200, 200, 403, 403, 403, 404]),
    (Method::POST, "/v1/merchants/acme/endpoints/rma/rotate_secret",
                                                              [200, 200, 403, 403, 403, 404]),
    (Method::DELETE, ENDPOINT,                                [204, 204, 403, 403, 403, 404]),
    (Method::GET, "/v1/audit?merchant=acme",                  [200, 200, 200, 200, 403, 404]),
    (Method::GET, "/v1/clients?merchant=acme",                [200, 200, 200, 200, 403, 404]),
    (Method::GET, "/v1/clients/{client}",                     [200, 200, 200, 200, 403, 404]),
    (Method::POST, "/v1/clients",                             [201, 201, 403, 403, 403, 404]),
    (Method::POST, "/v1/clients/{client}/rotate",             [200, 200, 403, 403, 403, 404]),
    (Method::POST, "/v1/clients/{client}/revoke",             [200, 200, 403, 403, 403, 404]),
];

fn body(method: &Method, path: &str) -> Option<Value> {
    match (method.as_str(), path) {
        ("GET" | "DELETE", _) => None,
        ("PUT", _) => Some(json!({"url": "https://acme.example/rmas"})),
        (_, "/v1/clients") => {
            Some(json!({"merchant": "acme", "name": "a shop", "scopes": ["orders"]}))
        }
        // Callers rotate one after the other, which ends the secret before the previous one.
        (_, path) if path.ends_with("/rotate_secret") || path.ends_with("/rotate") => {
            Some(json!({"force": true}))
        }
        _ => Some(json!({})),
    }
}

/// A token of a new client.
async fn token(app: &TestApp, merchant: Option<&str>, scopes: &[&str]) -> String {
    let (id, secret) = app.create_client(merchant, scopes).await;
    app.token(&id, &secret).await
}

async fn start() -> TestApp {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_and_merchants_decide_who_may_do_what() {
    let app = start().await;
    let (client, _) = app.create_client(Some("acme"), &["orders"]).await;
    let mut tokens = Vec::new();
    for (merchant, scopes) in CALLERS {
        tokens.push(token(&app, merchant, scopes).await);
    }
    for (method, path, expected) in RULES {
        let path = path.replace("{client}", &client);
        let mut statuses = Vec::new();
        for token in &tokens {
            if method == Method::DELETE {
                app.call(Method::PUT, ENDPOINT, body(&Method::PUT, ENDPOINT)).await;
            }
            let request = body(&method, &path);
            let (status, _) = app.call_as(token, method.clone(), &path, request).await;
            statuses.push(status.as_u16());
        }
        assert_eq!(statuses, expected, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_merchant_looks_like_one_that_does_not_exist() {
    let app = start().await;
    let (foreign, _) = app.create_client(Some("acme"), &["orders"]).await;
    let rival = token(&app, Some("rival"), &["read", "manage"]).await;
    let respond = async |method: Method, path: String, body: Option<Value>| {
        let (status, mut response) = app.call_as(&rival, method, &path, body).await;
        response.as_object_mut().unwrap().remove("request_id");
        (status, response.to_string())
    };
    for (method, path, expected) in RULES {
        if expected[5] != 404 {
            continue;
        }
        let request = body(&method, path);
        let existing = respond(method.clone(), path.replace("{client}", &foreign), request.clone());
        let unknown_path = path.replace("{client}", "bh_0").replace("acme", "nobody");
        let unknown_body = request.map(|body| {
            serde_json::from_str(&body.to_string().replace("\"acme\"", "\"nobody\"")).unwrap()
        });
        let unknown = respond(method, unknown_path, unknown_body).await;
        let (status, text) = existing.await;
        let text = text.replace(&foreign, "bh_0").replace("acme", "nobody");
        assert_eq!((status, text), unknown, "{path}");
    }
    // The first operator has no merchant.
    let path = format!("/v1/clients/{OPERATOR}/rotate");
    let (status, _) = respond(Method::POST, path, Some(json!({}))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_show_only_the_own_merchant() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    app.create_client(Some("rival"), &["orders"]).await;
    let manage = token(&app, Some("acme"), &["manage"]).await;
    let support = token(&app, None, &["read"]).await;
    let list = async |token: &str, path: &str, items: &str, member: &str| {
        let (status, page) = app.call_as(token, Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let mut found: Vec<_> =
            page[items].as_array().unwrap().iter().map(|item| item[member].clone()).collect();
        found.dedup();
        found
    };
    assert_eq!(list(&manage, "/v1/merchants", "merchants", "identifier").await, ["acme"]);
    assert_eq!(list(&manage, "/v1/merchants?after=acme", "merchants", "identifier").await, [""; 0]);
    assert_eq!(list(&support, "/v1/merchants", "merchants", "identifier").await, ["acme", "rival"]);
    for (path, items) in [("/v1/clients", "clients"), ("/v1/audit", "records")] {
        assert_eq!(list(&manage, path, items, "merchant").await, ["acme"], "{path}");
        assert!(list(&support, path, items, "merchant").await.len() > 1, "{path}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_creates_clients_with_its_own_scopes() {
    let app = start().await;
    let (id, secret) = app.create_client(Some("acme"), &["manage"]).await;
    let manage = app.token(&id, &secret).await;
    let create = async |token: &str, body: Value| {
        app.call_as(token, Method::POST, "/v1/clients", Some(body)).await
    };
    let all = json!(["orders", "returns", "read", "replay", "manage"]);
    let (status, created) = create(&manage, json!({"name": "shop", "scopes": all})).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    assert_eq!(created["merchant"], "acme");
    assert_eq!(created["scope"], "orders returns read replay manage");
    let record = &app.audit_records().await[0];
    assert_eq!((&record["actor"], &record["merchant"]), (&json!(id), &json!("acme")));

    let rejected = async |token: &str, body: Value| {
        let (status, response) = create(token, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{response}");
        response["errors"][0]["field"].as_str().unwrap().to_owned()
    };
    for scope in ["warehouse", "carrier", "operator", "shopper", "magic"] {
        let field = rejected(&manage, json!({"name": "x", "scopes": ["read", scope]})).await;
        assert_eq!(field, "$.scopes[1]", "{scope}");
    }
    let without_merchant = json!({"name": "x", "scopes": ["manage"]});
    assert_eq!(rejected(&app.operator_token, without_merchant).await, "$.merchant");
    // Only clients of the platform work for shoppers.
    let with_merchant = json!({"merchant": "acme", "name": "x", "scopes": ["shopper"]});
    assert_eq!(rejected(&app.operator_token, with_merchant).await, "$.scopes");
    app.create_client(None, &["shopper"]).await;
}
