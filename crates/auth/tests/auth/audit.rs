//! Tests of the audit log's filters.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::TestApp;

/// The actions of the records that a query finds, newest first.
async fn actions(app: &TestApp, query: &str) -> Vec<String> {
    let (status, page) = app.call(Method::GET, &format!("/v1/audit?{query}"), None).await;
    assert_eq!(status, StatusCode::OK, "{query}: {page}");
    let records = page["records"].as_array().unwrap();
    records.iter().map(|record| record["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_by_actor_action_and_time() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    let (id, secret) = app.create_client(None, &["operator"]).await;
    let other = app.token(&id, &secret).await;
    let change = json!({ "return_window_days": 60 });
    let path = "/v1/merchants/acme";
    let (status, _) = app.call_as(&other, Method::PATCH, path, Some(change)).await;
    assert_eq!(status, StatusCode::OK);

    assert_eq!(actions(&app, &format!("actor={id}")).await, ["merchant.updated"]);
    let both = format!("actor={id}&action=merchant.created");
    assert_eq!(actions(&app, &both).await, Vec::<String>::new());
    assert_eq!(actions(&app, "action=merchant.created").await, ["merchant.created"]);
    let record = &app.audit_records().await[0];
    assert_eq!(record["action"], "merchant.updated");
    assert_eq!((&record["actor"], &record["actor_name"]), (&json!(id), &json!("a client")));
    let at = record["created_at"].as_str().unwrap();
    assert_eq!(actions(&app, &format!("merchant=acme&from={at}")).await, ["merchant.updated"]);
    assert_eq!(actions(&app, &format!("merchant=acme&to={at}")).await, ["merchant.created"]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_page_keeps_the_filter() {
    let app = TestApp::alone().await;
    for id in ["a", "b", "c"] {
        app.create_merchant(id).await;
    }
    let query = "/v1/audit?action=merchant.created&limit=2";
    let (_, first) = app.call(Method::GET, query, None).await;
    let next = first["next"].as_str().unwrap();
    let (_, last) = app.call(Method::GET, &format!("{query}&after={next}"), None).await;
    let merchants = |page: &Value| -> Vec<Value> {
        page["records"].as_array().unwrap().iter().map(|one| one["merchant"].clone()).collect()
    };
    assert_eq!(
        (merchants(&first), merchants(&last)),
        (vec!["c".into(), "b".into()], vec!["a".into()])
    );
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_filter_is_rejected() {
    let app = TestApp::start().await;
    for query in ["actor=%00", "action=a%00", "from=yesterday", "to=0000-01-01T00:00:00Z", "by=ada"]
    {
        let (status, body) = app.call(Method::GET, &format!("/v1/audit?{query}"), None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {body}");
    }
}

/// Every request here changes something the first time and nothing the second time.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_changes_nothing_has_no_record() {
    let app = TestApp::alone().await;
    app.create_merchant("acme").await;
    app.person("ada@acme.example", "merchant-viewer", Some("acme")).await;
    let merchant = "/v1/merchants/acme";
    let endpoint = format!("{merchant}/endpoints/rma");
    let set = json!({
        "url": "https://acme.example/rmas?key=open-sesame", "headers": { "x-shop": "1" },
        "authentication": { "kind": "basic", "username": "u", "password": "open-sesame" },
    });
    let person = "/v1/people/ada@acme.example";
    for (method, path, body) in [
        (Method::PATCH, merchant.to_owned(), json!({ "return_window_days": 60 })),
        (Method::PUT, format!("{merchant}/warehouses/reno"), json!({ "external_identifier": "7" })),
        (Method::PUT, endpoint.clone(), set),
        (Method::POST, format!("{endpoint}/pause"), json!({})),
        (Method::POST, format!("{endpoint}/resume"), json!({})),
        (Method::PATCH, person.to_owned(), json!({ "role": "merchant-admin" })),
        (Method::POST, format!("{person}/disable"), json!({})),
        (Method::POST, format!("{person}/enable"), json!({})),
    ] {
        let send = async || {
            let (status, response) = app.call(method.clone(), &path, Some(body.clone())).await;
            assert_eq!(status, StatusCode::OK, "{path}: {response}");
            let (_, merchant) = app.call(Method::GET, merchant, None).await;
            (app.audit_records().await, merchant)
        };
        let before = app.audit_records().await;
        let first = send().await;
        assert_ne!(first.0, before, "{path}");
        assert_eq!(send().await, first, "{path}");
    }
    app.stop().await;
}
