//! Stock is asked for again before an order is placed.

use domain::exchange::FailureCause;
use serde_json::json;

use super::stage::{Stage, ask_with_tokens, carded, confirmed, exchanged};

#[tokio::test]
async fn a_variant_gone_meanwhile_becomes_a_refund() {
    let stage = Stage::start().await;
    // The shopper saw it; then it was sold. The memory of what the shopper saw does not count.
    assert_eq!(stage.variants("TEE").await["variants"][1]["sku"], "TEE-M");
    let left = json!([{"sku": "TEE-S", "title": "Small", "quantity_in_stock": 1}]);
    stage
        .behave("/sku/TEE/variants", json!([{"do": "answer", "body": left, "times": "always"}]))
        .await;
    let units = [
        exchanged("L1", 1, "TEE-M", 2500),
        exchanged("L2", 1, "TEE-S", 2500),
        exchanged("L2", 2, "TEE-S", 2500),
        carded("L3", 1),
    ];
    stage.confirm(&confirmed("R-1", "1001", &units)).await;
    let lines = |units: &[domain::returns::UnitId]| {
        units
            .iter()
            .map(|unit| (unit.order_line_item_identifier.clone(), unit.unit))
            .collect::<Vec<_>>()
    };
    let line = |line: &str, unit| (line.to_owned(), unit);
    let failed = stage.failed().await;
    assert_eq!(failed.cause, FailureCause::OutOfStock);
    assert_eq!(lines(&failed.units), [line("L1", 1), line("L2", 2)]);
    assert_eq!(lines(&stage.placed().await.units), [line("L2", 1), line("L3", 1)]);
    stage.quiet().await;
    let body = &stage.journal("/exchange_orders").await[0].body;
    assert_eq!(
        (&body["items"][0]["sku"], &body["items"][0]["quantity"]),
        (&json!("TEE-S"), &json!(1))
    );
    assert_eq!(body["items"].as_array().unwrap().len(), 2);
    let (_, shown) = stage.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["out_of_stock"].as_array().unwrap().len(), 2);
    assert_eq!(shown["stock"], "checked");
}

#[tokio::test]
async fn nothing_left_is_no_order_and_leaves_room_for_another_return() {
    let stage = Stage::start().await;
    stage.behave("/sku/TEE/variants", json!([{"do": "answer", "body": []}])).await;
    stage.confirm(&confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    let failed = stage.failed().await;
    assert_eq!((failed.cause, failed.units.len()), (FailureCause::OutOfStock, 1));
    stage.quiet().await;
    assert!(stage.journal("/exchange_orders").await.is_empty());
    let (_, shown) = stage.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["state"], "out_of_stock");
    stage.confirm(&confirmed("R-2", "1001", &[carded("L2", 1)])).await;
    assert_eq!(stage.placed().await.rma_identifier, "R-2");
    let (_, shown) = stage.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!((&shown["state"], &shown["rma_identifier"]), (&json!("placed"), &json!("R-2")));
}

#[tokio::test]
async fn a_question_that_fails_does_not_stop_the_order() {
    let stage = Stage::with(&[("VARIANTS__BUDGET", "400ms")]).await;
    stage
        .behave("/sku/TEE/variants", json!([{"do": "hang"}, {"do": "answer", "status": 500}]))
        .await;
    for (rma, order, reason) in [("R-1", "1001", "timed_out"), ("R-2", "1002", "rejected")] {
        stage.confirm(&confirmed(rma, order, &[exchanged("L1", 1, "TEE-M", 2500)])).await;
        assert_eq!(stage.placed().await.units.len(), 1);
        let (_, shown) = stage.get(&format!("/v1/exchange_orders/{order}"), "acme").await;
        assert_eq!(shown["stock"], "unchecked");
        let detail = shown["stock_detail"].as_str().unwrap();
        assert!(detail.starts_with(reason), "{detail}");
    }
    stage.quiet().await;
}

#[tokio::test]
async fn whatever_a_token_server_says_the_order_goes_out() {
    let stage = Stage::of(&[], ask_with_tokens).await;
    let error = format!("no\0{}", "x".repeat(10_000));
    let refusal =
        json!({"do": "answer", "status": 400, "body": {"error": error}, "times": "always"});
    stage.behave("/oauth/token", json!([refusal])).await;
    stage.confirm(&confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    assert_eq!(stage.placed().await.units.len(), 1);
    stage.quiet().await;
    let (_, shown) = stage.get("/v1/exchange_orders/1001", "acme").await;
    let detail = shown["stock_detail"].as_str().unwrap();
    assert!(detail.contains("no\u{FFFD}xx") && detail.len() < 600, "{detail}");
}
