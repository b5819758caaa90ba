//! Tests of the versions of a merchant's rules for returns.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::{TestApp, send};

const ACME: &str = "/v1/merchants/acme";
const VERSIONS: &str = "/v1/merchants/acme/policy/versions";

fn rule(id: &str, days: u32) -> Value {
    json!({ "id": id, "when": {}, "then": { "window": { "days": days } } })
}

/// Changes acme and expects a status.
async fn patch(app: &TestApp, token: &str, change: Value, expected: StatusCode) -> Value {
    let (status, body) = app.call_as(token, Method::PATCH, ACME, Some(change)).await;
    assert_eq!(status, expected, "{body}");
    body
}

/// The versions of acme, newest first.
async fn versions(app: &TestApp) -> Vec<Value> {
    let (status, page) = app.call(Method::GET, VERSIONS, None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    page["versions"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_of_the_rules_is_a_version_with_its_author() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    assert_eq!(versions(&app).await, Vec::<Value>::new());
    let (id, secret) = app.create_client(None, &["operator"]).await;
    let other = app.token(&id, &secret).await;
    let operator = &app.operator_token;

    let one = json!({ "policy": { "rules": [rule("a", 60)] } });
    let first = patch(&app, operator, one.clone(), StatusCode::OK).await;
    // None of these changes the rules.
    patch(&app, operator, one, StatusCode::OK).await;
    patch(&app, operator, json!({ "policy": { "shoppers": { "vip": [] } } }), StatusCode::OK).await;
    patch(&app, operator, json!({ "return_window_days": 45 }), StatusCode::OK).await;
    let two = json!({ "policy": { "rules": [rule("a", 60), rule("b", 90)] } });
    let second = patch(&app, &other, two, StatusCode::OK).await;
    patch(&app, operator, json!({ "policy": null }), StatusCode::OK).await;

    let found = versions(&app).await;
    let rules: Vec<_> = found.iter().map(|version| version["rules"].clone()).collect();
    assert_eq!(
        rules,
        [json!([]), json!([rule("a", 60), rule("b", 90)]), json!([rule("a", 60)])],
        "{found:?}"
    );
    assert_eq!(found[1]["version"], second["version"]);
    assert_eq!(found[1]["created_at"], second["updated_at"]);
    assert_eq!((&found[1]["actor"], &found[1]["actor_name"]), (&json!(id), &json!("a client")));
    assert_eq!((&found[2]["version"], &found[2]["actor"]), (&first["version"], &json!("operator")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_merchant_with_rules_has_a_version() {
    let app = TestApp::start().await;
    let new =
        json!({ "identifier": "acme", "name": "Acme", "policy": { "rules": [rule("a", 60)] } });
    let (status, created) = app.call(Method::POST, "/v1/merchants", Some(new)).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let found = versions(&app).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rules"], json!([rule("a", 60)]));
    assert_eq!(found[0]["version"], created["version"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_change_of_the_rules_is_no_version() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let unknown =
        json!({ "id": "a", "when": { "reasons": ["LOST"] }, "then": { "returnable": true } });
    let invalid = json!({ "policy": { "rules": [unknown] } });
    patch(&app, &app.operator_token, invalid, StatusCode::UNPROCESSABLE_ENTITY).await;
    // One response has every fault, also those that only the stored settings show.
    let faulty = json!({ "id": "a", "when": { "reasons": ["LOST"] }, "then": {} });
    let invalid = json!({ "policy": { "rules": [faulty] } });
    let (status, refusal) = app.call(Method::PATCH, ACME, Some(invalid)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refusal}");
    let errors = refusal["errors"].as_array().unwrap();
    let fields: Vec<_> = errors.iter().map(|error| &error["field"]).collect();
    assert_eq!(fields, ["$.policy.rules[0].then", "$.policy.rules[0].when.reasons[0]"]);
    let body = json!({ "policy": { "rules": [rule("a", 60)] } });
    let request = app.request(Method::PATCH, ACME).bearer_auth(&app.operator_token);
    let (status, body) = send(request.header("if-match", "\"1\"").json(&body)).await;
    assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{body}");
    assert_eq!(versions(&app).await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_have_pages() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    for days in [1, 2, 3] {
        let change = json!({ "policy": { "rules": [rule("a", days)] } });
        patch(&app, &app.operator_token, change, StatusCode::OK).await;
    }
    let days = |page: &Value| -> Vec<i64> {
        let versions = page["versions"].as_array().unwrap().iter();
        let days = |it: &Value| it["rules"][0]["then"]["window"]["days"].as_i64().unwrap();
        versions.map(days).collect()
    };
    let (_, first) = app.call(Method::GET, &format!("{VERSIONS}?limit=2"), None).await;
    let after = first["next"].as_str().unwrap();
    let (_, last) = app.call(Method::GET, &format!("{VERSIONS}?limit=2&after={after}"), None).await;
    assert_eq!((days(&first), days(&last)), (vec![3, 2], vec![1]));
    assert_eq!(last["next"], Value::Null);
    let (status, body) = app.call(Method::GET, &format!("{VERSIONS}?after=x"), None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_read_by_the_merchant_itself_and_by_staff() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    let change = json!({ "policy": { "rules": [rule("a", 60)] } });
    patch(&app, &app.operator_token, change, StatusCode::OK).await;
    let rival = "/v1/merchants/rival/policy/versions";
    let nobody = "/v1/merchants/nobody/policy/versions";
    for (merchant, scope, statuses) in [
        (Some("acme"), "read", [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND]),
        (Some("acme"), "manage", [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND]),
        (Some("acme"), "orders", [StatusCode::FORBIDDEN; 3]),
        (None, "read", [StatusCode::OK, StatusCode::OK, StatusCode::NOT_FOUND]),
    ] {
        let (id, secret) = app.create_client(merchant, &[scope]).await;
        let token = app.token(&id, &secret).await;
        for (path, expected) in [VERSIONS, rival, nobody].into_iter().zip(statuses) {
            let (status, body) = app.call_as(&token, Method::GET, path, None).await;
            assert_eq!(status, expected, "{scope} of {merchant:?} at {path}: {body}");
        }
    }
}
