//! The view of an order for support.

use super::projecting::{later, order, refunded};
use super::*;

#[tokio::test]
async fn an_order_is_shown_with_its_units_refunds_and_returns() {
    let app = TestApp::start().await;
    let sold = order("A", 4);
    app.store("acme", &sold).await;
    let first = app.start_return(&refund_of("A", &[1])).await;
    let second = app.start_return(&refund_of("A", &[2])).await;
    let refunded = refunded(&refunded(&sold, "R1", 1, Some(&first)), "R2", 1, Some("RMA-TYPO"));
    let mut partly = later(&refunded, 1);
    // The newest snapshot omits the refunds.
    app.store("acme", &refunded).await;
    partly.refunds.clear();
    app.store("acme", &partly).await;
    let (status, shown) = app.get("/v1/orders/A", "acme").await;
    assert_eq!(status, StatusCode::OK, "{shown}");
    assert_eq!((&shown["merchant"], &shown["order_identifier"]), (&json!("acme"), &json!("A")));
    assert_eq!(shown["updated_at"], json!(partly.updated_at));
    assert_eq!(shown["customer"], json!(sold.customer));
    let line = &shown["lines"][0];
    assert_eq!((&line["title"], &line["quantity"]), (&json!(sold.items[0].title), &json!(4)));
    let unit = |number: i32, rma: Option<&str>, refund: Option<&str>| {
        let mut unit = json!({ "unit": number, "paid_amount_cents": 2165 });
        for (name, value) in [("rma_identifier", rma), ("refund_identifier", refund)] {
            if let Some(value) = value {
                unit[name] = json!(value);
            }
        }
        unit
    };
    let units = json!([
        unit(1, Some(&first), Some("R1")),
        unit(2, Some(&second), None),
        unit(3, None, Some("R2")),
        unit(4, None, None),
    ]);
    assert_eq!(line["units"], units);
    let refunds = json!([
        {
            "identifier": "R1", "amount_cents": 2165, "quantities": { "A-1": 1 },
            "rma_identifier": first, "is_unmatched": false,
        },
        {
            "identifier": "R2", "amount_cents": 2165, "quantities": { "A-1": 1 },
            "rma_identifier": "RMA-TYPO", "is_unmatched": true,
        },
    ]);
    assert_eq!(shown["refunds"], refunds);
    let returns = shown["returns"].as_array().unwrap().iter();
    let returns: Vec<_> = returns.map(|it| (&it["rma_identifier"], &it["status"])).collect();
    let expected = [(&json!(second), &json!("CREATED")), (&json!(first), &json!("REFUNDED"))];
    assert_eq!(returns, expected);
    for (path, merchant) in [("/v1/orders/A", "rival"), ("/v1/orders/none", "acme")] {
        assert_eq!(app.get(path, merchant).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}
