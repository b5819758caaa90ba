//! What arrives at the warehouse.

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

async fn managed() -> Stage {
    let stage = Stage::with(|acme| acme.settings.managed_receiving = true).await;
    stage.store("acme", &order("A", 4)).await;
    stage
}

fn statuses(rma: &Value) -> Vec<&str> {
    let units = rma["units"].as_array().unwrap().iter();
    units.map(|unit| unit["receiving_status"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn units_are_received_undone_and_closed() {
    let stage = managed().await;
    let rma = stage.start_return(&refund_of("A", &[1, 2, 3])).await;
    let findings = json!({ "findings": [found("received", 1), found("damaged", 2)] });
    let (status, received) = stage.receive(&rma, &findings).await;
    assert_eq!(status, StatusCode::OK, "{received}");
    assert_eq!(statuses(&received), ["RECEIVED", "RECEIVED", "PENDING"]);
    assert_eq!(stage.receive(&rma, &findings).await, (status, received));
    let undo = json!({ "findings": [found("undo", 1)] });
    assert_eq!(statuses(&stage.receive(&rma, &undo).await.1), ["PENDING", "RECEIVED", "PENDING"]);
    assert_eq!(stage.receive(&rma, &undo).await.0, StatusCode::CONFLICT);
    let over = json!({ "findings": [{ "finding": "over", "quantity": 2, "sku": "X" }] });
    // Twice too many is twice too many.
    for _ in 0..2 {
        assert_eq!(stage.receive(&rma, &over).await.0, StatusCode::OK);
    }
    let (status, closed) = stage.receive(&rma, &json!({ "close": true })).await;
    assert_eq!((status, &closed["status"]), (StatusCode::OK, &json!("PARTIAL_REFUND")));
    assert_eq!(statuses(&closed), ["NOT_RECEIVED", "RECEIVED", "NOT_RECEIVED"]);
    let told = ["rma.created", "rma.received", "rma.received", "rma.received"];
    assert_eq!(stage.told().await, told);
    let (_, listed) = stage.get(&format!("/v1/discrepancies?rma_identifier={rma}"), "acme").await;
    let kinds: Vec<_> = listed["discrepancies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["detail"]["kind"])
        .collect();
    assert_eq!(kinds, ["received_over", "received_over", "received_damaged"]);
    // The merchant refunds what arrived, and in the end all of it.
    let all = refunded(&order("A", 4), "R1", 3, Some(&rma));
    stage.store("acme", &all).await;
    assert_eq!(stage.show(&rma).await["status"], "REFUNDED");
}

#[tokio::test]
async fn receiving_and_closing_at_once_are_two_messages_one_newer_than_the_other() {
    let stage = managed().await;
    let rma = stage.start_return(&refund_of("A", &[1, 2])).await;
    let body = json!({ "findings": [found("received", 1)], "close": true });
    assert_eq!(stage.receive(&rma, &body).await.0, StatusCode::OK);
    let arrivals = stage.arrivals("acme").await;
    let updated: Vec<Timestamp> = arrivals
        .iter()
        .map(|it| serde_json::from_value(it.body["updated_at"].clone()).unwrap())
        .collect();
    assert!(updated.is_sorted_by(|before, after| before < after), "{updated:?}");
    assert_eq!(updated.len(), 3);
}

#[tokio::test]
async fn a_keyed_receipt_counts_once_and_for_its_return_only() {
    let stage = managed().await;
    let first = stage.start_return(&refund_of("A", &[1])).await;
    let second = stage.start_return(&refund_of("A", &[2])).await;
    let token = stage.issuer.token(None, "operator");
    let headers = [("x-service-id", "acme"), ("idempotency-key", "parcel-1")];
    let body = json!({ "close": true });
    let receive = |rma: &str| {
        let path = format!("/v1/returns/{rma}/receipts");
        let (stage, token, body) = (&stage, &token, &body);
        async move { stage.send(Method::POST, &path, token, &headers, Some(body)).await }
    };
    let answer = receive(&first).await;
    assert_eq!(answer.0, StatusCode::OK);
    assert_eq!(receive(&first).await, answer);
    assert_eq!(receive(&second).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(stage.show(&second).await["status"], "CREATED");
    let path = format!("/v1/returns/{first}/receipts");
    assert_eq!(stage.post(&path, "acme", &body).await.0, StatusCode::FORBIDDEN);
    assert_eq!(stage.receive("none", &body).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_merchant_who_receives_itself_is_not_received_for() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 1)).await;
    let rma = stage.start_return(&refund_of("A", &[1])).await;
    assert_eq!(stage.receive(&rma, &json!({ "close": true })).await.0, StatusCode::CONFLICT);
    stage.tell(received(&rma, Uuid::new_v4())).await;
    eventually("the refusal is noted", SOON, || async {
        let (_, timeline) = stage.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
        (timeline["entries"][1]["detail"]["refused"] == "not_managed").then_some(())
    })
    .await;
    assert_eq!(stage.told().await, ["rma.created"]);
}

fn received(rma: &str, receipt: Uuid) -> UnitReceived {
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
    let stage = managed().await;
    let rma = stage.start_return(&refund_of("A", &[1, 2])).await;
    let receipt = Uuid::new_v4();
    stage.tell(received(&rma, receipt)).await;
    stage.tell(received(&rma, receipt)).await;
    stage.tell(received("not-ours", Uuid::new_v4())).await;
    stage.tell(received(&rma, Uuid::new_v4())).await;
    eventually("both are received", SOON, || async {
        (statuses(&stage.show(&rma).await) == ["RECEIVED", "RECEIVED"]).then_some(())
    })
    .await;
    assert_eq!(stage.told().await, ["rma.created", "rma.received", "rma.received"]);
    assert_eq!(stage.number("SELECT count(*) AS n FROM discrepancies").await, 0);
}
