//! Tests of reading exchange orders.

use reqwest::StatusCode;
use serde_json::{Value, json};
use testkit::eventually;

use super::app::{SOON, TestApp, confirmed, gift_card_unit};

fn orders(page: &Value) -> Vec<&str> {
    let orders = page["exchange_orders"].as_array().unwrap();
    orders.iter().map(|order| order["original_order_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_exchange_order_is_found_by_its_transaction() {
    let app = TestApp::alone().await;
    for (rma, order) in [("R-1", "A/1"), ("R-2", "A/2")] {
        app.confirm(&confirmed(rma, order, &[gift_card_unit("L1", 1)])).await;
        app.placed().await;
    }
    let (_, all) = app.get("/v1/exchange_orders", "acme").await;
    let transaction = all["exchange_orders"][0]["transaction_id"].as_str().unwrap();
    for filter in ["", "&state=placed", "&rma_identifier=R-2"] {
        let path = format!("/v1/exchange_orders?transaction_id={transaction}{filter}");
        assert_eq!(orders(&app.get(&path, "acme").await.1), ["A/2"], "{filter}");
        assert!(orders(&app.get(&path, "rival").await.1).is_empty(), "{filter}");
    }
    let (status, _) = app.get("/v1/exchange_orders?transaction_id=7", "acme").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_merchant_sees_its_own_and_an_operator_everything() {
    let app = TestApp::alone().await;
    for (rma, order) in [("R-1", "A/1"), ("R-2", "A/2"), ("R-3", "A/3")] {
        app.confirm(&confirmed(rma, order, &[gift_card_unit("L1", 1)])).await;
        app.placed().await;
    }
    let (_, all) = app.get("/v1/exchange_orders", "acme").await;
    assert_eq!(orders(&all), ["A/3", "A/2", "A/1"]);
    for query in [
        "original_order_id=A/2",
        "rma_identifier=R-2",
        "exchange_order_identifier=EX-A/2",
        "state=placed&rma_identifier=R-2",
    ] {
        let (_, found) = app.get(&format!("/v1/exchange_orders?{query}"), "acme").await;
        assert_eq!(orders(&found), ["A/2"], "{query}");
    }
    for state in ["undeliverable", "waiting"] {
        let (_, none) = app.get(&format!("/v1/exchange_orders?state={state}"), "acme").await;
        assert!(orders(&none).is_empty());
    }
    let (_, first) = app.get("/v1/exchange_orders?limit=2", "acme").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = app.get(&format!("/v1/exchange_orders?limit=2&after={next}"), "acme").await;
    assert_eq!((orders(&first), orders(&second)), (vec!["A/3", "A/2"], vec!["A/1"]));
    assert_eq!(second["next"], Value::Null);
    let oldest = "/v1/exchange_orders?limit=2&order=oldest";
    let (_, first) = app.get(oldest, "acme").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = app.get(&format!("{oldest}&after={next}"), "acme").await;
    assert_eq!((orders(&first), orders(&second)), (vec!["A/1", "A/2"], vec!["A/3"]));
    assert_eq!(second["next"], Value::Null);
    for query in ["order=oldest&state=placed", "order=oldest&state=placed&rma_identifier=R-2"] {
        let (_, found) = app.get(&format!("/v1/exchange_orders?{query}"), "acme").await;
        let expected: &[&str] =
            if query.contains("R-2") { &["A/2"] } else { &["A/1", "A/2", "A/3"] };
        assert_eq!(orders(&found), expected, "{query}");
    }

    let (status, _) = app.get("/v1/exchange_orders/A%2F2", "rival").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (_, none) = app.get("/v1/exchange_orders", "rival").await;
    assert!(orders(&none).is_empty());
    let operator = app.issuer.token(None, "operator");
    let (_, all) = app.get_with("/v1/exchange_orders", &operator, None).await;
    assert_eq!(orders(&all).len(), 3);
    let (_, all) = app.get_with("/v1/exchange_orders?state=placed", &operator, None).await;
    assert_eq!(orders(&all).len(), 3);
    let (_, none) = app.get_with("/v1/exchange_orders", &operator, Some("rival")).await;
    assert!(orders(&none).is_empty());
    let (status, shown) = app.get_with("/v1/exchange_orders/A%2F2", &operator, Some("acme")).await;
    assert_eq!((status, &shown["message"]["original_order_id"]), (StatusCode::OK, &json!("A/2")));
    let portal = app.issuer.token(None, "returns");
    let (status, _) = app.get_with("/v1/exchange_orders", &portal, None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, _) =
        app.get_with("/v1/exchange_orders", &app.issuer.token(Some("acme"), "orders"), None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_exchange_of_an_exchange_keeps_the_chain() {
    let app = TestApp::start().await;
    for (rma, order) in [("R-1", "1001"), ("R-2", "EX-1001"), ("R-3", "EX-EX-1001")] {
        app.confirm(&confirmed(rma, order, &[gift_card_unit("L1", 1)])).await;
        app.placed().await;
    }
    let earlier = async |order: &str| {
        app.get(&format!("/v1/exchange_orders/{order}"), "acme").await.1["earlier_orders"].take()
    };
    assert_eq!(earlier("1001").await, json!([]));
    assert_eq!(earlier("EX-1001").await, json!(["1001"]));
    assert_eq!(earlier("EX-EX-1001").await, json!(["1001", "EX-1001"]));
}

#[tokio::test]
async fn cyclic_identifiers_are_followed_once() {
    let app = TestApp::start().await;
    let named = |name: &str| json!({"do": "respond", "body": {"order_identifier": name}});
    app.behave("/exchange_orders", json!([named("own"), named("B"), named("A")])).await;
    for (rma, order) in [("R-1", "own"), ("R-2", "A"), ("R-3", "B")] {
        app.confirm(&confirmed(rma, order, &[gift_card_unit("L1", 1)])).await;
        app.placed().await;
    }
    for (order, earlier) in [("own", json!([])), ("A", json!(["B"])), ("B", json!(["A"]))] {
        let (_, shown) = app.get(&format!("/v1/exchange_orders/{order}"), "acme").await;
        assert_eq!(shown["earlier_orders"], earlier);
    }
}

#[tokio::test]
async fn a_page_is_limited_in_bytes() {
    let app = TestApp::start().await;
    for (rma, order) in [("R-1", "1"), ("R-2", "2"), ("R-3", "3")] {
        app.confirm(&confirmed(rma, order, &[gift_card_unit("L1", 1)])).await;
        app.placed().await;
    }
    app.execute("UPDATE exchange_orders SET items = items || repeat(' ', 3 * 1024 * 1024) WHERE merchant = 'acme'").await;
    let (_, first) = app.get("/v1/exchange_orders", "acme").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = app.get(&format!("/v1/exchange_orders?after={next}"), "acme").await;
    assert_eq!((orders(&first), orders(&second)), (vec!["3", "2"], vec!["1"]));
    assert_eq!(second["next"], Value::Null);
}

#[tokio::test]
async fn a_token_without_a_merchant_searches_all_merchants() {
    let app = TestApp::alone().await;
    app.confirm(&confirmed("R-1", "1", &[gift_card_unit("L1", 1)])).await;
    app.placed().await;
    // Identifiers are unique only within one merchant.
    let mut of_rival = confirmed("R-1", "1", &[gift_card_unit("L1", 1)]);
    of_rival.merchant = "rival".parse().unwrap();
    app.confirm(&of_rival).await;
    eventually("rival has an exchange", SOON, async || {
        let (_, page) = app.get("/v1/exchange_orders", "rival").await;
        (!orders(&page).is_empty()).then_some(())
    })
    .await;
    let support = app.issuer.token(None, "read replay");
    let operator = app.issuer.token(None, "operator");
    let viewer = app.issuer.token(Some("acme"), "read");
    let merchants = async |query: &str, token: &str| {
        let path = format!("/v1/exchange_orders?{query}");
        let (status, page) = app.get_with(&path, token, None).await;
        assert_eq!(status, StatusCode::OK, "{query}: {page}");
        let found = page["exchange_orders"].as_array().unwrap().iter();
        found.map(|order| order["merchant"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for query in ["original_order_id=1", "rma_identifier=R-1", "limit=5"] {
        for token in [&support, &operator] {
            assert_eq!(merchants(query, token).await, ["rival", "acme"], "{query}");
        }
        assert_eq!(merchants(query, &viewer).await, ["acme"], "{query}");
        let of_rival = format!("{query}&merchant=rival");
        assert_eq!(merchants(&of_rival, &support).await, ["rival"], "{query}");
        let path = format!("/v1/exchange_orders?{of_rival}");
        let (status, refusal) = app.get_with(&path, &viewer, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{query}");
        assert_eq!(refusal["message"], "there is no merchant rival");
    }
    assert_eq!(merchants("exchange_order_identifier=EX-1", &support).await, ["acme"]);
    let portal = app.issuer.token(None, "returns");
    let (status, _) = app.get_with("/v1/exchange_orders?rma_identifier=R-1", &portal, None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_scope_read_reads_and_does_not_abandon() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "0")]).await;
    let refusing = json!([{"do": "respond", "status": 503, "times": "always"}]);
    app.behave("/exchange_orders", refusing).await;
    app.confirm(&confirmed("R-1", "1", &[gift_card_unit("L1", 1)])).await;
    app.undeliverable().await;
    let support = app.issuer.token(None, "read replay");
    let list = "/v1/exchange_orders?state=undeliverable";
    let (_, page) = app.get_with(list, &support, None).await;
    assert_eq!(
        (orders(&page), &page["exchange_orders"][0]["merchant"]),
        (vec!["1"], &json!("acme"))
    );
    let viewer = app.issuer.token(Some("acme"), "read");
    for path in ["/v1/exchange_orders/1", "/v1/variants/TEE"] {
        assert_eq!(app.get_with(path, &viewer, None).await.0, StatusCode::OK, "{path}");
        assert_eq!(app.get_with(path, &support, Some("acme")).await.0, StatusCode::OK, "{path}");
        assert_eq!(app.get_with(path, &support, None).await.0, StatusCode::BAD_REQUEST, "{path}");
    }
    let foreign = app.issuer.token(Some("rival"), "read");
    let (status, _) = app.get_with("/v1/exchange_orders/1", &foreign, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(app.abandon("1", &support, "a reason").await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_invalid_query_is_rejected() {
    let app = TestApp::start().await;
    for query in ["limit=0", "limit=201", "after=%21", "state=lost", "unknown=1"] {
        let (status, _) = app.get(&format!("/v1/exchange_orders?{query}"), "acme").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}
