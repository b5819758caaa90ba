//! Tests of the check of stock and prices before an exchange order is placed.

use domain::exchange::FailureReason;
use domain::returns::{RefundType, UnitId};
use serde_json::json;

use super::app::{
    TestApp, add_oauth_variants_endpoint, confirmed, exchanged, gift_card_unit, reason,
};

#[tokio::test]
async fn a_variant_that_sold_out_is_refunded() {
    let app = TestApp::start().await;
    // The variant sells out after the shopper saw it. The cached variants must not be used.
    assert_eq!(app.variants("TEE").await["variants"][1]["sku"], "TEE-M");
    let left = json!([{"sku": "TEE-S", "title": "Small", "quantity_in_stock": 1}]);
    app.behave("/sku/TEE/variants", json!([{"do": "respond", "body": left, "times": "always"}]))
        .await;
    let units = [
        exchanged("L1", 1, "TEE-M", 2500),
        exchanged("L2", 1, "TEE-S", 2500),
        exchanged("L2", 2, "TEE-S", 2500),
        gift_card_unit("L3", 1),
    ];
    app.confirm(&confirmed("R-1", "1001", &units)).await;
    let line = |unit: &UnitId| format!("{}:{}", unit.order_line_item_identifier, unit.unit);
    let failed = app.failed().await;
    assert_eq!(reason(&failed), FailureReason::OutOfStock);
    let lines: Vec<_> = failed.items.iter().map(|item| line(&item.unit)).collect();
    assert_eq!(lines, ["L1:1", "L2:2"]);
    let lines: Vec<_> = app.placed().await.items.iter().map(|item| line(&item.unit)).collect();
    assert_eq!(lines, ["L2:1", "L3:1"]);
    app.wait_until_idle().await;
    let body = &app.journal("/exchange_orders").await[0].body;
    assert_eq!(
        (&body["items"][0]["sku"], &body["items"][0]["quantity"]),
        (&json!("TEE-S"), &json!(1))
    );
    assert_eq!(body["items"].as_array().unwrap().len(), 2);
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["failed"], json!(failed.items));
    // The merchant names no price, so the exchange is even.
    assert_eq!(
        (&shown["stock_check"], &shown["price_check"]),
        (&json!("checked"), &json!("unchecked"))
    );
    assert_eq!(shown["items"][0]["refund_type"], "EVEN_EXCHANGE");
}

#[tokio::test]
async fn without_stock_no_order_is_placed_and_another_return_can_place_one() {
    let app = TestApp::start().await;
    app.behave("/sku/TEE/variants", json!([{"do": "respond", "body": []}])).await;
    app.confirm(&confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    let failed = app.failed().await;
    assert_eq!((reason(&failed), failed.items.len()), (FailureReason::OutOfStock, 1));
    app.wait_until_idle().await;
    assert!(app.journal("/exchange_orders").await.is_empty());
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["state"], "not_exchangeable");
    app.confirm(&confirmed("R-2", "1001", &[gift_card_unit("L2", 1)])).await;
    assert_eq!(app.placed().await.rma_identifier, "R-2");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!((&shown["state"], &shown["rma_identifier"]), (&json!("placed"), &json!("R-2")));
}

#[tokio::test]
async fn a_failed_lookup_does_not_stop_the_order() {
    let app = TestApp::with_settings(&[("VARIANTS__TIMEOUT", "400ms")]).await;
    app.behave("/sku/TEE/variants", json!([{"do": "hang"}, {"do": "respond", "status": 500}]))
        .await;
    for (rma, order, reason) in [("R-1", "1001", "timed_out"), ("R-2", "1002", "rejected")] {
        // The caller's price does not make the exchange uneven.
        app.confirm(&confirmed(rma, order, &[exchanged("L1", 1, "TEE-M", 9900)])).await;
        let placed = app.placed().await;
        assert_eq!(placed.items[0].refund_type, RefundType::EvenExchange);
        let (_, shown) = app.get(&format!("/v1/exchange_orders/{order}"), "acme").await;
        assert_eq!(
            (&shown["stock_check"], &shown["price_check"]),
            (&json!("unchecked"), &json!("unchecked"))
        );
        let detail = shown["check_detail"].as_str().unwrap();
        assert!(detail.starts_with(reason), "{detail}");
    }
    app.wait_until_idle().await;
}

#[tokio::test]
async fn a_hostile_token_error_does_not_stop_the_order() {
    let app = TestApp::with_merchant(add_oauth_variants_endpoint).await;
    let error = format!("no\0{}", "x".repeat(10_000));
    let refusal =
        json!({"do": "respond", "status": 400, "body": {"error": error}, "times": "always"});
    app.behave("/oauth/token", json!([refusal])).await;
    app.confirm(&confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    assert_eq!(app.placed().await.items.len(), 1);
    app.wait_until_idle().await;
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    let detail = shown["check_detail"].as_str().unwrap();
    assert!(detail.contains("no\u{FFFD}xx") && detail.len() < 600, "{detail}");
}

#[tokio::test]
async fn a_changed_price_is_refunded() {
    let app = TestApp::start().await;
    let variant =
        |sku: &str, cents: i64| json!({"sku": sku, "title": sku, "unit_price_amount_cents": cents});
    let variants = json!([variant("TEE-S", 3100), variant("TEE-M", 2500), variant("TEE-L", 2500)]);
    let variants = json!([{"do": "respond", "body": variants, "times": "always"}]);
    app.behave("/sku/TEE/variants", variants).await;
    // The shopper saw 3000 for TEE-S, 2500 for TEE-M and 3000 for TEE-L.
    let units = [
        exchanged("L1", 1, "TEE-S", 3000),
        exchanged("L2", 1, "TEE-M", 2500),
        exchanged("L3", 1, "TEE-L", 3000),
    ];
    app.confirm(&confirmed("R-1", "1001", &units)).await;
    let failed = app.failed().await;
    assert_eq!(reason(&failed), FailureReason::PriceChanged);
    let lines: Vec<_> =
        failed.items.iter().map(|item| item.unit.order_line_item_identifier.as_str()).collect();
    assert_eq!(lines, ["L1", "L3"]);
    let placed = app.placed().await;
    assert_eq!(placed.items.len(), 1);
    assert_eq!(placed.items[0].unit.order_line_item_identifier, "L2");
    let body = &app.journal("/exchange_orders").await[0].body;
    assert_eq!(body["items"].as_array().unwrap().len(), 1);
    assert_eq!(body["items"][0]["sku"], "TEE-M");

    // Without any unit left there is no order, and another return can have one.
    app.confirm(&confirmed("R-2", "1002", &[exchanged("L1", 1, "TEE-S", 3000)])).await;
    assert_eq!(reason(&app.failed().await), FailureReason::PriceChanged);
    app.wait_until_idle().await;
    let (_, shown) = app.get("/v1/exchange_orders/1002", "acme").await;
    assert_eq!(shown["state"], "not_exchangeable");
    assert_eq!(shown["failed"][0]["reason"], "price_changed");
    app.confirm(&confirmed("R-3", "1002", &[gift_card_unit("L2", 1)])).await;
    assert_eq!(app.placed().await.rma_identifier, "R-3");
}
