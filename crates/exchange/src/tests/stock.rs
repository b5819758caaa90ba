//! Tests of the stock check before an exchange order is placed.

use domain::exchange::FailureCause;
use serde_json::json;

use super::app::{TestApp, ask_with_tokens, carded, confirmed, exchanged};

#[tokio::test]
async fn a_variant_that_sold_out_is_refunded() {
    let app = TestApp::start().await;
    // The variant sells out after the shopper saw it. The cached variants must not be used.
    assert_eq!(app.variants("TEE").await["variants"][1]["sku"], "TEE-M");
    let left = json!([{"sku": "TEE-S", "title": "Small", "quantity_in_stock": 1}]);
    app.behave("/sku/TEE/variants", json!([{"do": "answer", "body": left, "times": "always"}]))
        .await;
    let units = [
        exchanged("L1", 1, "TEE-M", 2500),
        exchanged("L2", 1, "TEE-S", 2500),
        exchanged("L2", 2, "TEE-S", 2500),
        carded("L3", 1),
    ];
    app.confirm(&confirmed("R-1", "1001", &units)).await;
    let lines = |units: &[domain::returns::UnitId]| {
        units
            .iter()
            .map(|unit| (unit.order_line_item_identifier.clone(), unit.unit))
            .collect::<Vec<_>>()
    };
    let line = |line: &str, unit| (line.to_owned(), unit);
    let failed = app.failed().await;
    assert_eq!(failed.cause, FailureCause::OutOfStock);
    assert_eq!(lines(&failed.units), [line("L1", 1), line("L2", 2)]);
    assert_eq!(lines(&app.placed().await.units), [line("L2", 1), line("L3", 1)]);
    app.wait_until_idle().await;
    let body = &app.journal("/exchange_orders").await[0].body;
    assert_eq!(
        (&body["items"][0]["sku"], &body["items"][0]["quantity"]),
        (&json!("TEE-S"), &json!(1))
    );
    assert_eq!(body["items"].as_array().unwrap().len(), 2);
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["out_of_stock"].as_array().unwrap().len(), 2);
    assert_eq!(shown["stock"], "checked");
}

#[tokio::test]
async fn without_stock_no_order_is_placed_and_another_return_can_place_one() {
    let app = TestApp::start().await;
    app.behave("/sku/TEE/variants", json!([{"do": "answer", "body": []}])).await;
    app.confirm(&confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    let failed = app.failed().await;
    assert_eq!((failed.cause, failed.units.len()), (FailureCause::OutOfStock, 1));
    app.wait_until_idle().await;
    assert!(app.journal("/exchange_orders").await.is_empty());
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["state"], "out_of_stock");
    app.confirm(&confirmed("R-2", "1001", &[carded("L2", 1)])).await;
    assert_eq!(app.placed().await.rma_identifier, "R-2");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!((&shown["state"], &shown["rma_identifier"]), (&json!("placed"), &json!("R-2")));
}

#[tokio::test]
async fn a_failed_lookup_does_not_stop_the_order() {
    let app = TestApp::with_settings(&[("VARIANTS__TIMEOUT", "400ms")]).await;
    app.behave("/sku/TEE/variants", json!([{"do": "hang"}, {"do": "answer", "status": 500}])).await;
    for (rma, order, reason) in [("R-1", "1001", "timed_out"), ("R-2", "1002", "rejected")] {
        app.confirm(&confirmed(rma, order, &[exchanged("L1", 1, "TEE-M", 2500)])).await;
        assert_eq!(app.placed().await.units.len(), 1);
        let (_, shown) = app.get(&format!("/v1/exchange_orders/{order}"), "acme").await;
        assert_eq!(shown["stock"], "unchecked");
        let detail = shown["stock_detail"].as_str().unwrap();
        assert!(detail.starts_with(reason), "{detail}");
    }
    app.wait_until_idle().await;
}

#[tokio::test]
async fn a_hostile_token_error_does_not_stop_the_order() {
    let app = TestApp::with_merchant(&[], ask_with_tokens).await;
    let error = format!("no\0{}", "x".repeat(10_000));
    let refusal =
        json!({"do": "answer", "status": 400, "body": {"error": error}, "times": "always"});
    app.behave("/oauth/token", json!([refusal])).await;
    app.confirm(&confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    assert_eq!(app.placed().await.units.len(), 1);
    app.wait_until_idle().await;
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    let detail = shown["stock_detail"].as_str().unwrap();
    assert!(detail.contains("no\u{FFFD}xx") && detail.len() < 600, "{detail}");
}
