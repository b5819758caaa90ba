//! The erasure of a shopper's data.

use chrono::TimeDelta;
use domain::erasure::{ErasureConfirmed, ReturnsErased};
use domain::event::Event as _;
use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};
use platform::{Clock, Timestamp};

use super::*;

fn erased(names: [&str; 2], erased_at: Timestamp) -> ReturnsErased {
    let [order, rma] = names.map(str::to_owned);
    ReturnsErased {
        erasure_id: Uuid::now_v7(),
        batch: 1,
        merchant: "acme".parse().unwrap(),
        order_identifiers: vec![order],
        rma_identifiers: vec![rma],
        gift_rma_identifiers: Vec::new(),
        email_sha256: None,
        erased_at,
    }
}

impl TestApp {
    /// Erases, and waits until the service has confirmed.
    async fn erase(&self, event: &ReturnsErased) {
        self.service.publish(event).await;
        let queue = format!("order-intake.{}", ErasureConfirmed::TYPE);
        let id = event.erasure_id.to_string();
        eventually("the erasure is confirmed", TIMEOUT, || async {
            let found = self.service.namespace.peek(&queue).await;
            let is_confirmed =
                |it: &Value| it["payload"].as_str().is_some_and(|text| text.contains(&id));
            found.iter().any(is_confirmed).then_some(())
        })
        .await;
    }

    async fn rows(&self, query: &str) -> i64 {
        self.service.database.count(&format!("SELECT count(*) AS n FROM {query}")).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_erasure_keeps_later_reports_of_the_warehouse() {
    let app = TestApp::alone().await;
    let erased_at = Clock::system().now();
    app.accept("/v1/outbound_shipments", &outbound_shipment("ASN-1", 1001)).await;
    app.delivered(2).await;
    let addresses = "outbound_shipments WHERE header LIKE '%Dock Road%'";
    let messages = "delivery_messages WHERE convert_from(body, 'UTF8') LIKE '%Dock Road%'";
    app.erase(&erased(["SO-1001", "RMA-1"], erased_at)).await;
    assert_eq!((app.rows(addresses).await, app.rows(messages).await), (1, 2));
    let later = Clock::system().now() + TimeDelta::seconds(1);
    app.erase(&erased(["SO-1001", "RMA-1"], later)).await;
    assert_eq!((app.rows(addresses).await, app.rows(messages).await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_keeps_the_records_of_other_shoppers_of_an_asn() {
    let app = TestApp::alone().await;
    let mut asn = inbound_asn("IN-1", 2);
    asn["shipment_identifier"] = json!("TRUCK-1");
    let mut other = asn["cartons"][0].clone();
    other["identifier"] = json!("BOX-2");
    other["reference"] = json!({ "type": "RMA", "identifier": "RMA-200" });
    let details = asn["cartons"][0]["details"].as_array_mut().unwrap();
    other["details"] = json!([details.pop().unwrap()]);
    asn["cartons"].as_array_mut().unwrap().push(other);
    app.accept("/v1/inbound_asns", &asn).await;
    for unit in [1, 2] {
        app.accept("/v1/receipts", &receipt("IN-1", unit)).await;
    }
    app.delivered(2).await;
    app.service.database.execute_raw("UPDATE delivery_attempts SET response_body = 'thanks'").await;
    let later = Clock::system().now() + TimeDelta::seconds(1);
    app.erase(&erased(["1001", "RMA-100"], later)).await;
    for (table, column) in [("receipts", "message"), ("inbound_lines", "line")] {
        let reasons = format!("{table} WHERE {column} LIKE '%Too small%'");
        assert_eq!(app.rows(&reasons).await, 1, "{table}");
    }
    assert_eq!(app.rows("delivery_attempts WHERE response_body = 'thanks'").await, 1);
    let other = "delivery_attempts JOIN delivery_messages ON id = delivery \
                 WHERE response_body = 'thanks' AND convert_from(body, 'UTF8') LIKE '%RMA-200%'";
    assert_eq!(app.rows(other).await, 1);
}
