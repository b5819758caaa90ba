//! The erasure of a shopper's data.

use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection as _;
use domain::erasure::{ErasureConfirmed, ReturnsErased};
use domain::event::Event as _;
use domain::warehouse::sample::{cancellation, inbound_asn, outbound_shipment, receipt};
use futures_util::future::join_all;
use messaging::{Envelope, Handler as _, Outbox};
use platform::database::Connection;
use platform::{Clock, Service as _, Timestamp};

use super::*;
use crate::erasing::Erasures;

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

    /// Erases in a transaction that the caller commits.
    async fn hold_erasure(&self, event: &ReturnsErased) -> Connection {
        let mut conn = self.service.pool.get().await.unwrap();
        conn.batch_execute("BEGIN").await.unwrap();
        let envelope = json!(Envelope::new("rma-engine", Clock::system().now(), event));
        let envelope: Envelope<ReturnsErased> = serde_json::from_value(envelope).unwrap();
        let handler = Erasures { outbox: Outbox::new(App::NAME), clock: Clock::system() };
        handler.handle(&mut conn, &[&envelope]).await.unwrap();
        conn
    }

    /// Reports while an erasure is not committed. The reports are from before the erasure.
    async fn report_during_erasure(&self, names: [&str; 2], reports: &[(&str, Value)]) {
        let later = Clock::system().now() + TimeDelta::hours(1);
        let mut erasure = self.hold_erasure(&erased(names, later)).await;
        let waiting =
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let stored =
            "(SELECT FROM delivery_messages UNION ALL SELECT FROM inbound_lines) AS stored";
        let stored_before = self.rows(stored).await;
        let reports = join_all(reports.iter().map(|(path, body)| self.accept(path, body)));
        let commit = async {
            eventually("a report waits, or is stored", TIMEOUT, || async {
                (self.rows(waiting).await > 0 || self.rows(stored).await > stored_before)
                    .then_some(())
            })
            .await;
            erasure.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(reports, commit);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_waits_for_the_erasure_of_its_order_is_erased() {
    let cases = [
        ("/v1/outbound_shipments", outbound_shipment("ASN-1", 1), "Dock Road"),
        ("/v1/inbound_asns", inbound_asn("IN-1", 1), "Too small"),
        ("/v1/drop_shipments/cancellations", cancellation("SO-1001"), "Ada Adler"),
    ];
    for (path, report, text) in cases {
        let app = TestApp::alone().await;
        app.report_during_erasure(["SO-1001", "RMA-100"], &[(path, report)]).await;
        for stored in ["outbound_shipments", "inbound_lines", "delivery_messages"] {
            let column = match stored {
                "outbound_shipments" => "header",
                "inbound_lines" => "line",
                _ => "convert_from(body, 'UTF8')",
            };
            let found = app.rows(&format!("{stored} WHERE {column} LIKE '%{text}%'")).await;
            assert_eq!(found, 0, "{path}: {stored}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_waits_for_the_erasure_of_its_asn_is_erased() {
    let app = TestApp::alone().await;
    app.accept("/v1/inbound_asns", &inbound_asn("IN-1", 2)).await;
    let own_reason = |unit| {
        let mut receipt = receipt("IN-1", unit);
        receipt["return_reason"] = json!("Too large");
        receipt
    };
    let mut named = own_reason(2);
    named["reference"] = json!({ "type": "RMA", "identifier": "RMA-100" });
    let reports = [("/v1/receipts", own_reason(1)), ("/v1/receipts", named)];
    app.report_during_erasure(["1001", "RMA-100"], &reports).await;
    assert_eq!(app.rows("receipts").await, 2);
    assert_eq!(app.rows("receipts WHERE message LIKE '%Too %'").await, 0);
    let messages = "delivery_messages WHERE convert_from(body, 'UTF8') LIKE '%Too %'";
    assert_eq!(app.rows(messages).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_erasure_erases_the_reason_that_a_newer_receipt_repeats() {
    let app = TestApp::alone().await;
    app.accept("/v1/inbound_asns", &inbound_asn("IN-1", 1)).await;
    let erased_at = Clock::system().now();
    app.accept("/v1/receipts", &receipt("IN-1", 1)).await;
    app.delivered(1).await;
    app.erase(&erased(["1001", "RMA-100"], erased_at)).await;
    assert_eq!(app.rows("receipts WHERE message LIKE '%Too small%'").await, 0);
    let messages = "delivery_messages WHERE convert_from(body, 'UTF8') LIKE '%Too small%'";
    assert_eq!(app.rows(messages).await, 0);
}
