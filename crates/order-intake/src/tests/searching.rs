//! Searches in the orders of one merchant and of all merchants.

use diesel_async::AsyncConnection as _;
use diesel_async::SimpleAsyncConnection as _;

use super::test_writer::TestWriter;
use super::*;
use crate::store::{self, Search};
use crate::stored_order::OrderKey;

impl TestApp {
    /// The merchants and identifiers of the orders that a token finds, page by page.
    async fn find(&self, query: &str, token: &str) -> Vec<(String, String)> {
        let (mut found, mut after) = (Vec::new(), String::new());
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
    let app = TestApp::start().await;
    let mut orders = sample_orders(4);
    for (order, identifier) in orders.iter_mut().zip(["A-10", "A-1", "A-2", "B%1"]) {
        order["identifier"] = json!(identifier);
        order["customer"]["email"] = json!(format!("{}@mail.example", &identifier[..1]));
        order["refunds"] = json!([]);
    }
    assert_eq!(app.publish("acme", &enclose(&orders)).await.0, StatusCode::OK);
    assert_eq!(app.publish("rival", &enclose(&orders[..2])).await.0, StatusCode::OK);

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
    let app = TestApp::start().await;
    let mut orders = sample_orders(2);
    orders[0]["identifier"] = json!("A-1");
    orders[1]["identifier"] = json!("B-1");
    app.publish("acme", &enclose(&orders[..1])).await;
    app.publish("rival", &enclose(&orders)).await;
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
    let app = TestApp::start().await;
    let mut orders = sample_orders(4);
    for (order, (identifier, day)) in
        orders.iter_mut().zip([("A-1", 3), ("A-2", 1), ("A-3", 4), ("A-4", 3)])
    {
        order["identifier"] = json!(identifier);
        order["created_at"] = json!(format!("2026-01-0{day}T00:00:00Z"));
        order["refunds"] = json!([]);
    }
    assert_eq!(app.publish("acme", &enclose(&orders)).await.0, StatusCode::OK);
    assert_eq!(app.publish("rival", &enclose(&orders[..1])).await.0, StatusCode::OK);
    let newest = [("acme", "A-3"), ("acme", "A-4"), ("acme", "A-1"), ("acme", "A-2")];
    let (staff, own) = (app.issuer.token(None, "read"), app.issuer.token(Some("acme"), "orders"));
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

/// Every search reads as many rows as a page has, in a table with many more.
#[tokio::test]
async fn searches_read_few_rows() {
    let writer = TestWriter::start().await;
    let pool = writer.database.pool();
    let mut conn = pool.get().await.unwrap();
    conn.batch_execute(
        "INSERT INTO orders SELECT merchant, 'A-' || n, 'Shipped', 'guest@mail.example', \
             ARRAY['L-' || n], now(), now(), sha256('x'), '{}', now() \
         FROM (VALUES ('acme'), ('rival')) AS merchants (merchant), generate_series(1, 10000) AS n; \
         ANALYZE orders",
    )
    .await
    .unwrap();
    let (acme, text) = ("acme".parse().ok(), |text: &str| Some(text.to_owned()));
    let after =
        || Some(OrderKey { merchant: "acme".parse().unwrap(), identifier: "A-5".to_owned() });
    let none = Search::default;
    let searches = [
        none(),
        Search { merchant: acme.clone(), ..none() },
        Search { merchant: acme.clone(), newest_first: true, ..none() },
        Search { merchant: acme.clone(), newest_first: true, after: after(), ..none() },
        Search { identifier_prefix: text("A-"), ..none() },
        Search { identifier_prefix: text("A-"), after: after(), ..none() },
        Search { identifier_prefix: text("A-"), merchant: acme.clone(), ..none() },
        Search { identifier_prefix: text("A-"), merchant: acme.clone(), after: after(), ..none() },
        Search { customer_email: text("guest@mail.example"), ..none() },
        Search { customer_email: text("guest@mail.example"), after: after(), ..none() },
        Search { customer_email: text("guest@mail.example"), merchant: acme, ..none() },
        Search { line_identifier: text("L-7"), ..none() },
        Search { identifier: text("A-7"), ..none() },
    ];
    let rows_read = "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint \
                     FROM pg_stat_xact_user_tables WHERE relname = 'orders'";
    for search in searches {
        let read = conn.transaction(async |conn| {
            // The statistics may include earlier transactions.
            let before = testkit::count(conn, rows_read).await;
            let (found, _) = store::search(conn, &search, 10).await?;
            assert!(!found.is_empty(), "{search:?}");
            let read = testkit::count(conn, rows_read).await - before;
            Ok::<_, platform::database::DatabaseError>(read)
        });
        let read = read.await.unwrap();
        assert!(read <= 20, "{read} rows for {search:?}");
    }
}
