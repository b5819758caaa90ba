//! Rules for refunds, amounts and times, through `POST /returns_portal_orders`.

use chrono::TimeDelta;

use super::*;

/// A sample order with one refund.
fn refunded() -> Value {
    let refunded = |order: &Value| !order["refunds"].as_array().unwrap().is_empty();
    sample_orders(100).into_iter().find(refunded).unwrap()
}

/// acme has `strict_amounts`, rival has not.
async fn start_strict() -> TestApp {
    let mut strict = merchant("acme");
    strict.settings.strict_amounts = true;
    TestApp::of(SHARED.join::<App>(&[]).await, strict).await
}

/// Publishes an order that rival sends with a warning and acme with an error, both for this field.
async fn check_amounts(app: &TestApp, order: Value, field: &str) {
    let field = json!(format!("$.returns_portal_order.orders[0].{field}"));
    let message = order_message(&[order]);
    let (status, response) = app.publish("rival", &message).await;
    let warnings = response["warnings"].as_array().unwrap();
    let fields: Vec<_> = warnings.iter().map(|warning| &warning["field"]).collect();
    assert_eq!((status, fields), (StatusCode::OK, vec![&field]), "{response}");
    assert_eq!(response["orders"][0]["result"], "stored");
    let (status, response) = app.publish("acme", &message).await;
    let errors = response["errors"].as_array().unwrap();
    let fields: Vec<_> = errors.iter().map(|error| &error["field"]).collect();
    assert_eq!((status, fields), (StatusCode::UNPROCESSABLE_ENTITY, vec![&field]));
}

#[tokio::test]
async fn only_the_rma_identifier_of_a_stored_refund_can_change() {
    let app = TestApp::start().await;
    let mut order = refunded();
    order["refunds"][0]["rma_identifier"] = json!("RMA-1");
    app.publish("acme", &order_message(&[order.clone()])).await;
    let mut corrected = order.clone();
    corrected["refunds"][0]["rma_identifier"] = json!("RMA-2");
    let message = order_message(&[corrected.clone()]);
    let (status, response) = app.publish("acme", &message).await;
    assert_eq!((status, &response["message"]), (StatusCode::OK, &json!("1 order: 1 stored")));
    let events = app.stored_events(2).await;
    let named = |event: &Value| event["data"]["order"]["refunds"][0]["rma_identifier"].clone();
    let rma_identifiers: Vec<_> = events.iter().map(named).collect();
    assert_eq!(rma_identifiers, ["RMA-1", "RMA-2"]);

    corrected["refunds"][0]["note"] = json!("changed my mind");
    let (status, response) = app.publish("acme", &order_message(&[corrected])).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let error = json!({
        "field": "$.returns_portal_order.orders[0].refunds[0]", "code": "invalid",
        "detail": "only the rma_identifier of a stored refund can change",
    });
    assert_eq!(response["errors"], json!([error]));
}

#[tokio::test]
async fn wrong_sums_are_warnings_or_errors() {
    let app = start_strict().await;
    let mut order = sample_orders(1).remove(0);
    order["tax_amount_cents"] = json!(999_999);
    check_amounts(&app, order, "tax_amount_cents").await;
}

#[tokio::test]
async fn refunds_above_the_amount_paid_are_warnings_or_errors() {
    let app = start_strict().await;
    let mut order = refunded();
    let amount = "refunds[0].total_refund_amount_cents";
    order["refunds"][0]["total_refund_amount_cents"] = json!(9_999_999);
    check_amounts(&app, order.clone(), amount).await;
    // A refund without units can only exceed the total of the order.
    order["identifier"] = json!("another");
    order["refunds"][0]["identifier"] = json!("another refund");
    order["refunds"][0]["refund_line_items"] = json!([]);
    let total = order["total_amount_cents"].as_i64().unwrap();
    order["refunds"][0]["total_refund_amount_cents"] = json!(total + 1);
    check_amounts(&app, order, amount).await;
}

#[tokio::test]
async fn an_order_discount_that_no_line_carries_is_a_warning() {
    let app = start_strict().await;
    let mut order = sample_orders(1).remove(0);
    let discount = order["discount_amount_cents"].as_i64().unwrap();
    order["discount_amount_cents"] = json!(discount + 300);
    for merchant in ["acme", "rival"] {
        let (status, response) = app.publish(merchant, &order_message(&[order.clone()])).await;
        let warning = json!({
            "field": "$.returns_portal_order.orders[0].discount_amount_cents", "code": "invalid",
            "detail": "300 of the discount is on no line, and is spread over the lines",
        });
        assert_eq!((status, &response["warnings"]), (StatusCode::OK, &json!([warning])));
    }
}

#[tokio::test]
async fn an_update_more_than_a_day_in_the_future_is_rejected() {
    let app = TestApp::start().await;
    let mut order = sample_orders(1).remove(0);
    order["updated_at"] = json!(platform::Clock::system().now() + TimeDelta::hours(23));
    assert_eq!(app.publish("acme", &order_message(&[order.clone()])).await.0, StatusCode::OK);
    order["updated_at"] = json!(platform::Clock::system().now() + TimeDelta::hours(25));
    let (status, response) = app.publish("acme", &order_message(&[order])).await;
    let error = json!({
        "field": "$.returns_portal_order.orders[0].updated_at", "code": "invalid",
        "detail": "must be at most 24 hours in the future",
    });
    assert_eq!((status, &response["errors"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!([error])));
}
