//! Looking exchange orders up.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::stage::{Stage, carded, confirmed};

fn orders(page: &Value) -> Vec<&str> {
    let orders = page["exchange_orders"].as_array().unwrap();
    orders.iter().map(|order| order["original_order_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_merchant_sees_its_own_and_an_operator_everything() {
    let stage = Stage::start().await;
    for (rma, order) in [("R-1", "A/1"), ("R-2", "A/2"), ("R-3", "A/3")] {
        stage.confirm(&confirmed(rma, order, &[carded("L1", 1)])).await;
        stage.placed().await;
    }
    let (_, all) = stage.get("/v1/exchange_orders", "acme").await;
    assert_eq!(orders(&all), ["A/3", "A/2", "A/1"]);
    for query in [
        "original_order_id=A/2",
        "rma_identifier=R-2",
        "exchange_order_identifier=EX-A/2",
        "state=placed&rma_identifier=R-2",
    ] {
        let (_, found) = stage.get(&format!("/v1/exchange_orders?{query}"), "acme").await;
        assert_eq!(orders(&found), ["A/2"], "{query}");
    }
    for state in ["undeliverable", "waiting"] {
        let (_, none) = stage.get(&format!("/v1/exchange_orders?state={state}"), "acme").await;
        assert!(orders(&none).is_empty());
    }
    let (_, first) = stage.get("/v1/exchange_orders?limit=2", "acme").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = stage.get(&format!("/v1/exchange_orders?limit=2&after={next}"), "acme").await;
    assert_eq!((orders(&first), orders(&second)), (vec!["A/3", "A/2"], vec!["A/1"]));
    assert_eq!(second["next"], Value::Null);

    let (status, _) = stage.get("/v1/exchange_orders/A%2F2", "rival").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (_, none) = stage.get("/v1/exchange_orders", "rival").await;
    assert!(orders(&none).is_empty());
    let operator = stage.issuer.token(None, "operator");
    let (_, all) = stage.get_with("/v1/exchange_orders", &operator, None).await;
    assert_eq!(orders(&all).len(), 3);
    let (_, all) = stage.get_with("/v1/exchange_orders?state=placed", &operator, None).await;
    assert_eq!(orders(&all).len(), 3);
    let (_, none) = stage.get_with("/v1/exchange_orders", &operator, Some("rival")).await;
    assert!(orders(&none).is_empty());
    let (status, shown) =
        stage.get_with("/v1/exchange_orders/A%2F2", &operator, Some("acme")).await;
    assert_eq!((status, &shown["message"]["original_order_id"]), (StatusCode::OK, &json!("A/2")));
    let portal = stage.issuer.token(None, "returns");
    let (status, _) = stage.get_with("/v1/exchange_orders", &portal, None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, _) = stage
        .get_with("/v1/exchange_orders", &stage.issuer.token(Some("acme"), "orders"), None)
        .await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_exchange_of_an_exchange_keeps_the_chain() {
    let stage = Stage::start().await;
    for (rma, order) in [("R-1", "1001"), ("R-2", "EX-1001"), ("R-3", "EX-EX-1001")] {
        stage.confirm(&confirmed(rma, order, &[carded("L1", 1)])).await;
        stage.placed().await;
    }
    let earlier = async |order: &str| {
        stage.get(&format!("/v1/exchange_orders/{order}"), "acme").await.1["earlier_orders"].take()
    };
    assert_eq!(earlier("1001").await, json!([]));
    assert_eq!(earlier("EX-1001").await, json!(["1001"]));
    assert_eq!(earlier("EX-EX-1001").await, json!(["1001", "EX-1001"]));
}

#[tokio::test]
async fn a_bad_query_is_refused() {
    let stage = Stage::start().await;
    for query in
        ["limit=0", "limit=501", "after=%21", "state=lost", "unknown=1", "rma_identifier=%00"]
    {
        let (status, _) = stage.get(&format!("/v1/exchange_orders?{query}"), "acme").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
    let (status, _) = stage.get("/v1/exchange_orders/%00", "acme").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
