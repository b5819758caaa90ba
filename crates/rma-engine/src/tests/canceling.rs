//! Canceling returns.

use super::projecting::order;
use super::*;

async fn cancel(app: &TestApp, rma: &str, body: &Value) -> (StatusCode, Value) {
    app.post(&format!("/v1/returns/{rma}/cancel"), "acme", body).await
}

#[tokio::test]
async fn a_canceled_return_releases_its_units() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let (status, canceled) = cancel(&app, &rma, &json!({ "units": [unit("A", 1)] })).await;
    assert_eq!((status, &canceled["status"]), (StatusCode::OK, &json!("CREATED")));
    let second = app.start_return(&refund_of("A", &[1])).await;
    assert_eq!(cancel(&app, &rma, &json!({})).await.0, StatusCode::OK);
    // Canceling again changes nothing.
    let (status, canceled) = cancel(&app, &rma, &json!({})).await;
    assert_eq!((status, &canceled["status"]), (StatusCode::OK, &json!("CANCELED")));
    let arrivals = app.arrivals("acme").await;
    let of = |rma: &str| {
        let own = arrivals.iter().filter(|it| it.body["rma_identifier"] == *rma);
        own.map(|it| (it.event.as_str(), it.body["items"].as_array().unwrap().len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&rma), [("rma.created", 2), ("rma.canceled", 1), ("rma.canceled", 1)]);
    assert_eq!(of(&second), [("rma.created", 1)]);
    let (status, _) = app.post("/v1/returns", "acme", &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    app.start_return(&refund_of("A", &[2])).await;
}

#[tokio::test]
async fn only_the_merchant_cancels_a_return_before_the_carrier_has_it() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{rma}/cancel");
    assert_eq!(app.post(&path, "rival", &json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(cancel(&app, "none", &json!({})).await.0, StatusCode::NOT_FOUND);
    let (status, _) = cancel(&app, &rma, &json!({ "units": [unit("A", 7)] })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    for event in ["label", "in_transit"] {
        let report = json!({
            "event_identifier": event, "event": event, "rma_identifier": rma, "tracking_number": "1Z",
        });
        assert_eq!(app.carrier(&report).await.0, StatusCode::OK);
    }
    let (status, refusal) = cancel(&app, &rma, &json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(refusal["message"].as_str().unwrap().contains("the carrier already has the parcel"));
    let messages = ["rma.created", "rma.tracking_updated", "rma.in_transit"];
    assert_eq!(app.sent_messages().await, messages);
}

#[tokio::test]
async fn an_unshipped_unit_is_removed_when_its_return_is_canceled() {
    let app = TestApp::start().await;
    let mut order = order("A", 1);
    app.store("acme", &order).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    order.items[0].quantity_shipped = 0;
    order.updated_at += chrono::TimeDelta::seconds(1);
    app.store("acme", &order).await;
    assert_eq!(cancel(&app, &rma, &json!({})).await.0, StatusCode::OK);
    let (status, refusal) = app.post("/v1/returns", "acme", &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], json!("not_shipped"), "{refusal}");
}
