//! Tests of `GET /v1/orders`.

use std::slice::from_ref as one;

use super::*;

async fn identifiers(app: &TestApp, query: &str) -> Vec<String> {
    let response = app.get(&format!("/v1/orders{query}"), "acme").await;
    assert_eq!(response.status(), StatusCode::OK, "{query}");
    let response: Value = response.json().await.unwrap();
    let orders = response["orders"].as_array().unwrap();
    orders.iter().map(|order| order["identifier"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_order_is_returned_as_published() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(1);
    orders[0]["identifier"] = json!("A/1 ä");
    orders[0]["unknown"] = json!({ "weights": [1.25, 3] });
    app.publish("acme", &order_message(&orders)).await;
    let path = "/v1/orders/A%2F1%20%C3%A4";
    let found: Value = app.get(path, "acme").await.json().await.unwrap();
    assert_eq!((&found["identifier"], &found["document"]), (&json!("A/1 ä"), &orders[0]));
    assert_eq!(app.get(path, "rival").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(app.get("/v1/orders/none", "acme").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(app.get("/v1/orders/%00", "acme").await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn orders_are_found_by_identifier_email_and_line() {
    let app = TestApp::start().await;
    let orders = sample_orders(20);
    app.publish("acme", &order_message(&orders)).await;
    app.publish("rival", &order_message(&orders)).await;
    let wanted = &orders[7];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let number = text(&wanted["identifier"]);
    let email = text(&wanted["customer"]["email"]).to_uppercase();
    let line = text(&wanted["items"][0]["identifier"]);
    assert_eq!(identifiers(&app, &format!("?identifier={number}")).await, one(&number));
    assert!(identifiers(&app, &format!("?customer_email={email}")).await.contains(&number));
    assert_eq!(identifiers(&app, &format!("?line_identifier={line}")).await, one(&number));
    let nothing = format!("?identifier={number}&line_identifier=none");
    assert_eq!(identifiers(&app, &nothing).await, Vec::<String>::new());
}

#[tokio::test]
async fn orders_are_paginated() {
    let app = TestApp::start().await;
    app.publish("acme", &sample_message(25)).await;
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/orders?limit=10{after}");
        let page: Value = app.get(&path, "acme").await.json().await.unwrap();
        seen.push(page["orders"].as_array().unwrap().len());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(seen, [10, 10, 5]);
    assert_eq!(identifiers(&app, "?limit=200").await.len(), 25);
}

#[tokio::test]
async fn a_page_of_large_orders_is_shorter() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(3);
    orders.iter_mut().for_each(|order| order["padding"] = json!("x".repeat(2 << 20)));
    let (last, first) = orders.split_last().unwrap();
    for order in first {
        app.publish("acme", &order_message(std::slice::from_ref(order))).await;
    }
    let only: Value = app.get("/v1/orders", "acme").await.json().await.unwrap();
    assert_eq!((only["orders"].as_array().unwrap().len(), only.get("next")), (2, None));
    app.publish("acme", &order_message(std::slice::from_ref(last))).await;
    let first: Value = app.get("/v1/orders", "acme").await.json().await.unwrap();
    assert_eq!(first["orders"].as_array().unwrap().len(), 2);
    let rest = format!("?after={}", first["next"].as_str().unwrap());
    assert_eq!(identifiers(&app, &rest).await.len(), 1);
}

#[tokio::test]
async fn any_line_identifier_can_be_searched_for() {
    let app = TestApp::start().await;
    let mut orders = sample_orders(1);
    orders[0]["items"][0]["identifier"] = json!("one\u{1f}line");
    orders[0]["refunds"] = json!([]);
    app.publish("acme", &order_message(&orders)).await;
    let found = identifiers(&app, "?line_identifier=one%1Fline").await;
    assert_eq!(found, [orders[0]["identifier"].as_str().unwrap()]);
    assert!(identifiers(&app, "?line_identifier=one").await.is_empty());
}

#[tokio::test]
async fn an_invalid_query_is_rejected() {
    let app = TestApp::start().await;
    // The texts of the cursors in base64 are `ab`, `A/b` and `a/b\0`.
    let cursors = ["after=%21", "after=YWI", "after=QS9i", "after=YS9iAA"];
    let others = ["limit=0", "limit=201", "limit=x", "unknown=1", "identifier=%00"];
    for query in cursors.into_iter().chain(others) {
        let response = app.get(&format!("/v1/orders?{query}"), "acme").await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{query}");
    }
}
