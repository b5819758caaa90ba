//! Searches in the orders of one merchant and of all merchants.

use super::*;

impl TestApp {
    /// The merchants and identifiers of the orders that a token finds, page by page.
    async fn find(&self, query: &str, token: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let url = format!("{}/v1/orders?limit=2&{query}{after}", self.service.url);
            let response = self.client.get(url).bearer_auth(token).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{query}");
            let page: Value = response.json().await.unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let orders = page["orders"].as_array().unwrap();
            found.extend(orders.iter().map(|it| (text(&it["merchant"]), text(&it["identifier"]))));
            let Some(next) = page["next"].as_str() else { return found };
            after = format!("&after={next}");
        }
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test]
async fn staff_search_the_orders_of_all_merchants() {
    let app = TestApp::alone().await;
    let mut orders = sample_orders(4);
    for (order, identifier) in orders.iter_mut().zip(["A-10", "A-1", "A-2", "B%1"]) {
        order["identifier"] = json!(identifier);
        order["customer"]["email"] = json!(format!("{}@mail.example", &identifier[..1]));
        order["refunds"] = json!([]);
    }
    assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    assert_eq!(app.publish("rival", &order_message(&orders[..2])).await.0, StatusCode::OK);

    let staff = app.issuer.token(None, "read");
    let by_prefix = [("acme", "A-1"), ("rival", "A-1"), ("acme", "A-10"), ("rival", "A-10")];
    assert_eq!(app.find("identifier_prefix=A-1", &staff).await, pairs(&by_prefix));
    assert_eq!(app.find("identifier_prefix=B%25", &staff).await, pairs(&[("acme", "B%1")]));
    assert_eq!(app.find("identifier_prefix=B_", &staff).await, pairs(&[]));
    let of_a =
        [("acme", "A-1"), ("acme", "A-10"), ("acme", "A-2"), ("rival", "A-1"), ("rival", "A-10")];
    assert_eq!(app.find("customer_email=a@Mail.example", &staff).await, pairs(&of_a));
    assert_eq!(app.find("identifier=A-2", &staff).await, pairs(&[("acme", "A-2")]));
    let rival = [("rival", "A-1"), ("rival", "A-10")];
    assert_eq!(app.find("merchant=rival", &staff).await, pairs(&rival));
    let all: Vec<_> = app.find("", &staff).await;
    assert_eq!((all.len(), &all[3]), (6, &("acme".to_owned(), "B%1".to_owned())));
}

#[tokio::test]
async fn a_merchant_finds_only_its_own_orders() {
    let app = TestApp::alone().await;
    let mut orders = sample_orders(2);
    orders[0]["identifier"] = json!("A-1");
    orders[1]["identifier"] = json!("B-1");
    app.publish("acme", &order_message(&orders[..1])).await;
    app.publish("rival", &order_message(&orders)).await;
    for scope in ["orders", "read"] {
        let token = app.issuer.token(Some("acme"), scope);
        assert_eq!(app.find("identifier_prefix=", &token).await, pairs(&[("acme", "A-1")]));
        assert_eq!(app.find("merchant=acme", &token).await, pairs(&[("acme", "A-1")]));
        for (path, status) in [("?merchant=rival", 404), ("/B-1", 404), ("/A-1", 200)] {
            let url = format!("{}/v1/orders{path}", app.service.url);
            let response = app.client.get(url).bearer_auth(&token).send().await.unwrap();
            assert_eq!(response.status(), status, "{scope} {path}");
        }
    }
    let url = format!("{}/v1/orders", app.service.url);
    let status = async |token: String| {
        app.client.get(&url).bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    assert_eq!(status(app.issuer.token(None, "orders")).await, 400, "needs a merchant");
    assert_eq!(status(app.issuer.token(Some("acme"), "returns")).await, 403);
    let publish = app.request().bearer_auth(app.issuer.token(Some("acme"), "read"));
    assert_eq!(publish.body("{}").send().await.unwrap().status(), 403, "may only read");
}

#[tokio::test]
async fn the_newest_orders_of_a_merchant_come_first() {
    let app = TestApp::alone().await;
    let mut orders = sample_orders(4);
    for (order, (identifier, day)) in
        orders.iter_mut().zip([("A-1", 3), ("A-2", 1), ("A-3", 4), ("A-4", 3)])
    {
        order["identifier"] = json!(identifier);
        order["created_at"] = json!(format!("2026-01-0{day}T00:00:00Z"));
        order["refunds"] = json!([]);
    }
    assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    assert_eq!(app.publish("rival", &order_message(&orders[..1])).await.0, StatusCode::OK);
    let newest = [("acme", "A-3"), ("acme", "A-4"), ("acme", "A-1"), ("acme", "A-2")];
    let staff = app.issuer.token(None, "read");
    let own = app.issuer.token(Some("acme"), "orders");
    assert_eq!(app.find("sort=newest&merchant=acme", &staff).await, pairs(&newest));
    assert_eq!(app.find("sort=newest", &own).await, pairs(&newest));
    for (query, token) in [
        ("sort=newest", &staff),
        ("sort=newest&merchant=acme&identifier_prefix=A", &staff),
        ("sort=oldest", &own),
    ] {
        let url = format!("{}/v1/orders?{query}", app.service.url);
        let response = app.client.get(url).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn searches_by_line_follow_the_newest_snapshot() {
    let app = TestApp::alone().await;
    let mut orders = sample_orders(3);
    for (order, identifier) in orders.iter_mut().zip(["A-1", "A-2", "A-3"]) {
        order["identifier"] = json!(identifier);
        order["updated_at"] = json!("2026-01-01T00:00:00Z");
        order["refunds"] = json!([]);
        order["items"].as_array_mut().unwrap().truncate(1);
        order["items"][0]["identifier"] = json!("1");
    }
    assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    assert_eq!(app.publish("rival", &order_message(&orders[..1])).await.0, StatusCode::OK);
    let token = app.issuer.token(Some("acme"), "orders");
    let acme = [("acme", "A-1"), ("acme", "A-2"), ("acme", "A-3")];
    assert_eq!(app.find("line_identifier=1", &token).await, pairs(&acme));
    let staff = app.issuer.token(None, "read");
    let all = [("acme", "A-1"), ("acme", "A-2"), ("acme", "A-3"), ("rival", "A-1")];
    assert_eq!(app.find("line_identifier=1", &staff).await, pairs(&all));

    orders[1]["updated_at"] = json!("2026-01-02T00:00:00Z");
    orders[1]["items"][0]["identifier"] = json!("2");
    assert_eq!(app.publish("acme", &order_message(&orders[1..2])).await.0, StatusCode::OK);
    let left = [("acme", "A-1"), ("acme", "A-3")];
    assert_eq!(app.find("line_identifier=1", &token).await, pairs(&left));
    assert_eq!(app.find("line_identifier=2", &token).await, pairs(&[("acme", "A-2")]));
    let stored = app.service.database.count("SELECT count(*) FROM order_lines").await;
    assert_eq!(stored, 4, "the line that the order lost is deleted");
}

#[tokio::test]
async fn two_filters_without_a_common_index_are_rejected() {
    let app = TestApp::start().await;
    for (query, status) in [
        ("identifier_prefix=A&customer_email=a@b.c", 400),
        ("identifier_prefix=A&line_identifier=1", 400),
        ("customer_email=a@b.c&line_identifier=1", 400),
        ("identifier=A-1&line_identifier=1", 200),
        ("identifier=A-1&customer_email=a@b.c", 200),
    ] {
        let response = app.get(&format!("/v1/orders?{query}"), "acme").await;
        assert_eq!(response.status(), status, "{query}");
    }
}
