//! `backhaul asn`, `receipt` and `shipment` against a running warehouse notifier.

use std::time::Duration;

use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};
use serde_json::{Value, json};
use testkit::eventually;
use warehouse_notifier::App;

use crate::app::TestApp;

/// Posts as the operator for acme.
async fn post(app: &TestApp, url: &str, body: &Value) {
    let token = app.text("token --as operator").await;
    let client = platform::http_client(Duration::from_secs(300)).unwrap();
    let request = client.post(url).bearer_auth(token.trim()).header("X-Service-Id", "acme");
    let response = request.json(body).send().await.unwrap();
    assert_eq!(response.status(), 201, "{}", response.text().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn asns_shipments_and_receipts_are_listed_shown_and_registered() {
    let app = TestApp::start().await;
    let settings = [("SEALING__KEYS", testkit::sealing_keys())];
    let (_database, warehouse) = app.start_service::<App>(&settings).await;
    app.text("merchant add acme --name Acme").await;
    let at = format!("--merchant acme --service-url {}", warehouse.url);
    eventually("the merchant is replicated", Duration::from_secs(300), || async {
        app.backhaul(&format!("asn list {at}")).await.status.success().then_some(())
    })
    .await;

    let file = app.checkout.path().join("asn.json");
    std::fs::write(&file, inbound_asn("IN-1", 2).to_string()).unwrap();
    let register = format!("asn register {} {at}", file.display());
    assert!(app.text(&register).await.contains("expected    2"));
    assert_eq!(app.json(&format!("{register} --json")).await["lines"], 2);
    std::fs::write(&file, json!({ "asn_number": "IN-2", "to": {} }).to_string()).unwrap();
    let stderr = app.error(&register, 1).await;
    assert!(stderr.contains("$.cartons: missing_field"), "{stderr}");

    post(&app, &format!("{}/v1/receipts", warehouse.url), &receipt("IN-1", 2)).await;
    let shipments = format!("{}/v1/outbound_shipments", warehouse.url);
    post(&app, &shipments, &outbound_shipment("ASN-1", 1001)).await;

    let asns = app.text(&format!("asn list {at}")).await;
    assert!(asns.starts_with("ASN   SHIPMENT  LINES  EXPECTED  RECEIVED"), "{asns}");
    let shown = app.text(&format!("asn show IN-1 {at}")).await;
    assert!(shown.contains("customer shopper-1") && shown.contains("L-2   BOX-1"), "{shown}");
    let shown = app.json(&format!("asn show IN-1 {at} --json")).await;
    assert_eq!(shown["received"], 1);
    let receipts = app.text(&format!("receipt list --asn IN-1 {at}")).await;
    assert_eq!(receipts.lines().count(), 2, "{receipts}");
    assert!(receipts.contains("U-2"), "{receipts}");
    let none = app.text(&format!("receipt list --asn IN-9 {at}")).await;
    assert_eq!(none.lines().count(), 1, "{none}");
    let list = app.text(&format!("shipment list --limit 1 {at}")).await;
    assert!(list.contains("ASN-1  freight  pending"), "{list}");
    let shown = app.text(&format!("shipment show ASN-1 {at}")).await;
    assert!(shown.contains("ASN-1_1  1000") && shown.contains("ASN-1_2  1"), "{shown}");
    let stderr = app.error(&format!("shipment show ASN-9 {at}"), 1).await;
    assert!(stderr.starts_with("error: there is no outbound shipment ASN-9"), "{stderr}");
    let stderr = app.error("receipt list --merchant acme", 2).await;
    assert!(stderr.contains("set WAREHOUSE_URL or pass --service-url"), "{stderr}");
    assert!(warehouse.stop().await);
}
