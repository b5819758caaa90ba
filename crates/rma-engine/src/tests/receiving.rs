//! Receiving at the warehouse.

use domain::warehouse::UnitReceived;
use platform::Timestamp;
use uuid::Uuid;

use super::projecting::{order, refunded};
use super::*;

fn found(finding: &str, number: i32) -> Value {
    let mut found = unit("A", number);
    found["finding"] = json!(finding);
    found
}

async fn managed() -> TestApp {
    let app = TestApp::with(|acme| acme.settings.managed_receiving = true).await;
    app.store("acme", &order("A", 4)).await;
    app
}

fn statuses(rma: &Value) -> Vec<&str> {
    let units = rma["units"].as_array().unwrap().iter();
    units.map(|unit| unit["receiving_status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn units_are_received_undone_and_closed() {
    let app = managed().await;
    let rma = app.start_return(&refund_of("A", &[1, 2, 3])).await;
    let findings = json!({ "findings": [found("received", 1), found("damaged", 2)] });
    let (status, received) = app.receive(&rma, &findings).await;
    assert_eq!(status, StatusCode::OK, "{received}");
    assert_eq!(statuses(&received), ["RECEIVED", "RECEIVED", "PENDING"]);
    assert_eq!(app.receive(&rma, &findings).await, (status, received));
    let undo = json!({ "findings": [found("undo", 1)] });
    assert_eq!(statuses(&app.receive(&rma, &undo).await.1), ["PENDING", "RECEIVED", "PENDING"]);
    assert_eq!(app.receive(&rma, &undo).await.0, StatusCode::CONFLICT);
    let over = json!({ "findings": [{ "finding": "over", "quantity": 2, "sku": "X" }] });
    // Each surplus receipt is recorded.
    for _ in 0..2 {
        assert_eq!(app.receive(&rma, &over).await.0, StatusCode::OK);
    }
    let (status, closed) = app.receive(&rma, &json!({ "close": true })).await;
    assert_eq!((status, &closed["status"]), (StatusCode::OK, &json!("PARTIAL_REFUND")));
    assert_eq!(statuses(&closed), ["NOT_RECEIVED", "RECEIVED", "NOT_RECEIVED"]);
    let messages = ["rma.created", "rma.received", "rma.received", "rma.received"];
    assert_eq!(app.sent_messages().await, messages);
    let (_, listed) = app.get(&format!("/v1/discrepancies?rma_identifier={rma}"), "acme").await;
    let kinds: Vec<_> = listed["discrepancies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["detail"]["kind"])
        .collect();
    assert_eq!(kinds, ["received_over", "received_over", "received_damaged"]);
    // The merchant refunds the received units first, then all of them.
    let all = refunded(&order("A", 4), "R1", 3, Some(&rma));
    app.store("acme", &all).await;
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
}

#[tokio::test]
async fn receiving_and_closing_in_one_request_sends_two_messages() {
    let app = managed().await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let body = json!({ "findings": [found("received", 1)], "close": true });
    assert_eq!(app.receive(&rma, &body).await.0, StatusCode::OK);
    let arrivals = app.arrivals("acme").await;
    let updated: Vec<Timestamp> = arrivals
        .iter()
        .map(|it| serde_json::from_value(it.body["updated_at"].clone()).unwrap())
        .collect();
    assert!(updated.is_sorted_by(|before, after| before < after), "{updated:?}");
    assert_eq!(updated.len(), 3);
}

#[tokio::test]
async fn an_idempotency_key_applies_to_one_receipt_of_one_return() {
    let app = managed().await;
    let first = app.start_return(&refund_of("A", &[1])).await;
    let second = app.start_return(&refund_of("A", &[2])).await;
    let token = app.issuer.token(None, "operator");
    let headers = [("x-service-id", "acme"), ("idempotency-key", "parcel-1")];
    let body = json!({ "close": true });
    let receive = |rma: &str| {
        let path = format!("/v1/returns/{rma}/receipts");
        let app = &app;
        let token = &token;
        let body = &body;
        async move { app.send(Method::POST, &path, token, &headers, Some(body)).await }
    };
    let response = receive(&first).await;
    assert_eq!(response.0, StatusCode::OK);
    assert_eq!(receive(&first).await, response);
    assert_eq!(receive(&second).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(app.show(&second).await["status"], "CREATED");
    let path = format!("/v1/returns/{first}/receipts");
    assert_eq!(app.post(&path, "acme", &body).await.0, StatusCode::FORBIDDEN);
    assert_eq!(app.receive("none", &body).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_unknown_unit_is_reported_with_its_finding() {
    let app = managed().await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let over = json!({ "finding": "over", "quantity": 1 });
    let findings = [found("received", 1), found("short", 3), over, found("wrong", 4)];
    let (status, rejected) = app.receive(&rma, &json!({ "findings": findings })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{rejected}");
    let errors = rejected["errors"].as_array().unwrap();
    let fields: Vec<_> = errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["$.findings[1]", "$.findings[3]"]);
}

#[tokio::test]
async fn receipts_need_managed_receiving() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    assert_eq!(app.receive(&rma, &json!({ "close": true })).await.0, StatusCode::CONFLICT);
    app.publish_event(received(&rma, Uuid::new_v4())).await;
    eventually("the refusal is recorded", SOON, || async {
        let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
        (timeline["entries"][1]["detail"]["refused"] == "not_managed").then_some(())
    })
    .await;
    assert_eq!(app.sent_messages().await, ["rma.created"]);
}

pub(super) fn received(rma: &str, receipt: Uuid) -> UnitReceived {
    UnitReceived {
        merchant: "acme".parse().unwrap(),
        rma_identifier: rma.to_owned(),
        receipt,
        asn_number: "ASN-1".to_owned(),
        reference_line_identifier: Some("A-1".to_owned()),
        sku: None,
        upc: None,
        unit_identifier: "LPN-1".to_owned(),
        condition: Some("N".to_owned()),
        reject_reason: None,
        received_at: Clock::system().now(),
    }
}

#[tokio::test]
async fn the_warehouse_reports_each_unit_once() {
    let app = managed().await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let receipt = Uuid::new_v4();
    app.publish_event(received(&rma, receipt)).await;
    app.publish_event(received(&rma, receipt)).await;
    app.publish_event(received("not-ours", Uuid::new_v4())).await;
    app.publish_event(received(&rma, Uuid::new_v4())).await;
    eventually("both are received", SOON, || async {
        (statuses(&app.show(&rma).await) == ["RECEIVED", "RECEIVED"]).then_some(())
    })
    .await;
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.received", "rma.received"]);
    assert_eq!(
        app.number("SELECT count(*) AS n FROM discrepancies WHERE merchant = 'acme'").await,
        0
    );
}

#[tokio::test]
async fn a_wrong_close_hides_no_other_fault() {
    let app = managed().await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let faults = async |body: Value| {
        let (status, response) = app.receive(&rma, &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{response}");
        let errors = response["errors"].as_array().unwrap().iter();
        errors.map(|it| it["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let both = json!({ "close": "yes", "findings": [{ "finding": "over" }], "other": 1 });
    assert_eq!(faults(both).await, ["$.other", "$.close", "$.findings[0].quantity"]);
    assert_eq!(faults(json!({ "close": "yes" })).await, ["$.close"]);
    assert_eq!(faults(json!({ "close": false })).await, ["$.findings"]);
}
