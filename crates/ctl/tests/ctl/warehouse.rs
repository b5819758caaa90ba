//! What happens in a warehouse, seen from the command line.

use std::time::Duration;

use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};
use platform::{Clock, Running, Service as _};
use serde_json::{Value, json};
use testkit::{Database, eventually, run};
use warehouse_notifier::App;

use super::Stack;

/// A warehouse notifier that believes the stack's token service.
async fn notifier(stack: &Stack) -> (Running, Database) {
    let database = Database::create(App::migrations()).await;
    let jwks = format!("{}/.well-known/jwks.json", stack.auth.url);
    let settings = [
        ("SEALING__KEYS", testkit::sealing_keys()),
        ("IDENTITY__ISSUER", "https://auth.test"),
        ("IDENTITY__JWKS_URL", jwks.as_str()),
    ];
    let running = run::<App>(&settings, Clock::system(), &database, &stack.auth.namespace).await;
    (running, database)
}

/// What a warehouse sends.
async fn report(stack: &Stack, url: &str, body: &Value) {
    let token = stack.text("token --as operator").await;
    let client = platform::http_client(Duration::from_secs(10)).unwrap();
    let request = client.post(url).bearer_auth(token.trim()).header("X-Service-Id", "acme");
    let answer = request.json(body).send().await.unwrap();
    assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn asns_shipments_and_receipts_are_listed_shown_and_registered() {
    let stack = Stack::start().await;
    let (warehouse, _database) = notifier(&stack).await;
    stack.text("merchant add acme --name Acme").await;
    let at = format!("--merchant acme --service-url {}", warehouse.url);
    eventually("the merchant is known", Duration::from_secs(20), || async {
        stack.backhaul(&format!("asn list {at}")).await.status.success().then_some(())
    })
    .await;

    let file = stack.checkout.path().join("asn.json");
    std::fs::write(&file, inbound_asn("IN-1", 2).to_string()).unwrap();
    let register = format!("asn register {} {at}", file.display());
    assert!(stack.text(&register).await.contains("expected    2"));
    assert_eq!(stack.json(&format!("{register} --json")).await["lines"], 2);
    std::fs::write(&file, json!({ "asn_number": "IN-2", "to": {} }).to_string()).unwrap();
    let complaint = stack.complaint(&register, 1).await;
    assert!(complaint.contains("$.cartons: missing_field"), "{complaint}");

    report(&stack, &format!("{}/v1/receipts", warehouse.url), &receipt("IN-1", 2)).await;
    let shipments = format!("{}/v1/outbound_shipments", warehouse.url);
    report(&stack, &shipments, &outbound_shipment("ASN-1", 1001)).await;

    let asns = stack.text(&format!("asn list {at}")).await;
    assert!(asns.starts_with("ASN   SHIPMENT  LINES  EXPECTED  RECEIVED"), "{asns}");
    let shown = stack.text(&format!("asn show IN-1 {at}")).await;
    assert!(shown.contains("customer shopper-1") && shown.contains("L-2   BOX-1"), "{shown}");
    let shown = stack.json(&format!("asn show IN-1 {at} --json")).await;
    assert_eq!(shown["received"], 1);
    let receipts = stack.text(&format!("receipt list --asn IN-1 {at}")).await;
    assert_eq!(receipts.lines().count(), 2, "{receipts}");
    assert!(receipts.contains("U-2"), "{receipts}");
    let none = stack.text(&format!("receipt list --asn IN-9 {at}")).await;
    assert_eq!(none.lines().count(), 1, "{none}");
    let list = stack.text(&format!("shipment list --limit 1 {at}")).await;
    assert!(list.contains("ASN-1  freight  pending"), "{list}");
    let shown = stack.text(&format!("shipment show ASN-1 {at}")).await;
    assert!(shown.contains("ASN-1_1  1000") && shown.contains("ASN-1_2  1"), "{shown}");
    let complaint = stack.complaint(&format!("shipment show ASN-9 {at}"), 1).await;
    assert!(complaint.starts_with("error: there is no outbound shipment ASN-9"), "{complaint}");
    let complaint = stack.complaint("receipt list --merchant acme", 2).await;
    assert!(complaint.contains("set WAREHOUSE_URL or give --service-url"), "{complaint}");
    assert!(warehouse.stop().await);
}
