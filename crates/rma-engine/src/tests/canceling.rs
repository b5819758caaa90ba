//! Canceling returns, and what they leave behind.

use super::projecting::order;
use super::*;

async fn cancel(stage: &Stage, rma: &str, body: &Value) -> (StatusCode, Value) {
    stage.post(&format!("/v1/returns/{rma}/cancel"), "acme", body).await
}

#[tokio::test]
async fn a_canceled_return_frees_its_units() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 2)).await;
    let rma = stage.start_return(&refund_of("A", &[1, 2])).await;
    let (status, canceled) = cancel(&stage, &rma, &json!({ "units": [unit("A", 1)] })).await;
    assert_eq!((status, &canceled["status"]), (StatusCode::OK, &json!("CREATED")));
    let second = stage.start_return(&refund_of("A", &[1])).await;
    assert_eq!(cancel(&stage, &rma, &json!({})).await.0, StatusCode::OK);
    // Again: nothing happens.
    let (status, canceled) = cancel(&stage, &rma, &json!({})).await;
    assert_eq!((status, &canceled["status"]), (StatusCode::OK, &json!("CANCELED")));
    let arrivals = stage.arrivals("acme").await;
    let of = |rma: &str| {
        let own = arrivals.iter().filter(|it| it.body["rma_identifier"] == *rma);
        own.map(|it| (it.event.as_str(), it.body["items"].as_array().unwrap().len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&rma), [("rma.created", 2), ("rma.canceled", 1), ("rma.canceled", 1)]);
    assert_eq!(of(&second), [("rma.created", 1)]);
    let (status, _) = stage.post("/v1/returns", "acme", &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    stage.start_return(&refund_of("A", &[2])).await;
}

#[tokio::test]
async fn only_its_own_merchant_cancels_it_and_not_too_late() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 1)).await;
    let rma = stage.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{rma}/cancel");
    assert_eq!(stage.post(&path, "rival", &json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(cancel(&stage, "none", &json!({})).await.0, StatusCode::NOT_FOUND);
    let (status, _) = cancel(&stage, &rma, &json!({ "units": [unit("A", 7)] })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    for event in ["label", "in_transit"] {
        let report = json!({
            "event_identifier": event, "event": event, "rma_identifier": rma, "tracking_number": "1Z",
        });
        assert_eq!(stage.carrier(&report).await.0, StatusCode::OK);
    }
    let (status, refusal) = cancel(&stage, &rma, &json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(refusal["message"].as_str().unwrap().contains("the carrier already has the parcel"));
    let told = ["rma.created", "rma.tracking_updated", "rma.in_transit"];
    assert_eq!(stage.told().await, told);
}

#[tokio::test]
async fn a_unit_that_did_not_ship_after_all_is_gone_once_its_return_is_canceled() {
    let stage = Stage::set().await;
    let mut order = order("A", 1);
    stage.store("acme", &order).await;
    let rma = stage.start_return(&refund_of("A", &[1])).await;
    order.items[0].quantity_shipped = 0;
    order.updated_at += chrono::TimeDelta::seconds(1);
    stage.store("acme", &order).await;
    assert_eq!(cancel(&stage, &rma, &json!({})).await.0, StatusCode::OK);
    let (status, refusal) = stage.post("/v1/returns", "acme", &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], json!("not_shipped"), "{refusal}");
}
