//! Parcels that come after the return expired.

use super::moving::report;
use super::projecting::{later, order};
use super::*;

impl TestApp {
    /// Lets a new return of these units of order A expire.
    async fn expired_return(&self, units: &[i32]) -> String {
        let rma = self.start_return(&refund_of("A", units)).await;
        let label = report(&format!("label of {rma}"), "label", Some(&rma), Some(&rma));
        assert_eq!(self.carrier(&label).await.0, StatusCode::OK);
        self.pass_deadlines().await;
        self.until_status(&rma, "CANCELED").await;
        rma
    }
}

#[tokio::test]
async fn a_late_scan_brings_a_return_back() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.expired_return(&[1, 2]).await;
    let scan = report("scan", "in_transit", None, Some(&rma));
    let (status, tracked) = app.carrier(&scan).await;
    assert_eq!((status, &tracked["applied"]), (StatusCode::OK, &json!(true)), "{tracked}");
    // A repeated report gets the first response.
    assert_eq!(app.carrier(&scan).await, (status, tracked));
    let shown = app.show(&rma).await;
    assert_eq!((&shown["status"], &shown["canceled_at"]), (&json!("CREATED"), &json!(null)));
    assert_eq!(shown["units"][1]["is_expired"], json!(false));
    let (status, _) = app.post("/v1/returns", "acme", &refund_of("A", &[2])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let last = app.arrivals("acme").await.pop().unwrap();
    assert_eq!((last.event.as_str(), &last.body["status"]), ("rma.in_transit", &json!("CREATED")));
    assert_eq!(last.body["items"].as_array().unwrap().len(), 2);
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entry = timeline["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(entry["detail"]["reopened"].as_array().unwrap().len(), 2);
    assert_eq!(app.deadlines().await, 0);
}

#[tokio::test]
async fn a_late_scan_of_units_that_are_taken_is_a_discrepancy() {
    let app = TestApp::start().await;
    let order = order("A", 2);
    app.store("acme", &order).await;
    let rma = app.expired_return(&[1, 2]).await;
    let taken = app.start_return(&refund_of("A", &[1])).await;
    // The other unit did not ship after all.
    let mut changed = later(&order, 1);
    changed.items[0].quantity_shipped = 1;
    app.store("acme", &changed).await;
    for (id, event) in [("1", "in_transit"), ("2", "delivered")] {
        let (status, tracked) = app.carrier(&report(id, event, None, Some(&rma))).await;
        assert_eq!((status, &tracked["applied"]), (StatusCode::OK, &json!(true)), "{tracked}");
        assert_eq!(tracked["returns"][0]["late"].as_array().unwrap().len(), 2);
    }
    assert_eq!(app.show(&rma).await["status"], "CANCELED");
    assert_eq!(app.show(&taken).await["status"], "CREATED");
    let (_, listed) = app.get("/v1/discrepancies?kind=sent_after_expiry", "acme").await;
    let found = listed["discrepancies"].as_array().unwrap();
    // Each unit once, although the carrier reported the parcel twice.
    assert_eq!(found.len(), 2, "{listed}");
    assert_eq!(found[0]["detail"]["rma_identifier"], rma);
    let events = app.sent_messages().await;
    assert_eq!(events, ["rma.created", "rma.tracking_updated", "rma.expired", "rma.created"]);
}

#[tokio::test]
async fn a_late_receipt_brings_a_return_back() {
    let app = TestApp::with(|acme| acme.settings.managed_receiving = true).await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.expired_return(&[1]).await;
    let mut finding = unit("A", 1);
    finding["finding"] = json!("received");
    let received = json!({ "findings": [finding] });
    let (status, shown) = app.receive(&rma, &received).await;
    assert_eq!((status, &shown["status"]), (StatusCode::OK, &json!("CREATED")), "{shown}");
    assert_eq!(shown["units"][0]["receiving_status"], "RECEIVED");
    assert_eq!(app.sent_messages().await.last().unwrap(), "rma.received");
}
