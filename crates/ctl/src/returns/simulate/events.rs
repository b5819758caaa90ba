//! The events of carrier, warehouse and shop.

use std::time::Duration;

use anyhow::bail;
use domain::returns::{Rma, RmaStatus, RmaUnit};
use platform::{Clock, Timestamp};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::api_client::ApiClient;
use crate::output::text_at;

/// Limit for the refund to get from the order intake to the return.
const REFUND_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit for the label to come. Afterwards the carrier reports one.
const LABEL_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The tracking number of the label that the merchant's label provider made, if it has one that responds.
pub(super) async fn provider_label(
    client: &ApiClient,
    rma: &str,
) -> anyhow::Result<Option<String>> {
    let started_at = Instant::now();
    let query = [("rma_identifier", rma)];
    loop {
        let found = client.search(&["v1", "label_requests"], &query).await?;
        match text_at(&found, "/label_requests/0/state").as_str() {
            "bought" => return Ok(Some(text_at(&found, "/label_requests/0/tracking_number"))),
            "requested" if started_at.elapsed() < LABEL_TIMEOUT => sleep(POLL_INTERVAL).await,
            _ => return Ok(None),
        }
    }
}

pub(super) async fn report_carrier_event(
    client: &ApiClient,
    (rma, tracking_number): (&str, &str),
    event: &str,
    label_url: Option<&str>,
) -> anyhow::Result<()> {
    let mut report = json!({
        "event_identifier": format!("{tracking_number}-{event}"), "event": event,
        "rma_identifier": rma, "tracking_number": tracking_number,
    });
    if let (Some(url), Some(report)) = (label_url, report.as_object_mut()) {
        report.insert("label_url".to_owned(), url.into());
    }
    client.post(&["v1", "carrier_events"], &report).await?;
    Ok(())
}

pub(super) async fn receive(client: &ApiClient, rma: &Rma) -> anyhow::Result<()> {
    let findings = rma.units.iter().map(|RmaUnit { id, .. }| {
        json!({
            "order_identifier": id.order_identifier, "unit": id.unit, "finding": "received",
            "order_line_item_identifier": id.order_line_item_identifier,
        })
    });
    let body = json!({ "findings": findings.collect::<Vec<_>>() });
    client.post(&["v1", "returns", &rma.rma_identifier, "receipts"], &body).await?;
    Ok(())
}

/// Publishes the order again, with a refund of each of its units in the return.
pub(super) async fn refund(order_intake: &ApiClient, order: &str, rma: &Rma) -> anyhow::Result<()> {
    let mut stored = order_intake.get(&["v1", "orders", order]).await?;
    let Some(Value::Object(document)) = stored.get_mut("document") else {
        bail!("order {order} has no document");
    };
    let id = &rma.rma_identifier;
    let units = rma.units.iter().filter(|unit| unit.id.order_identifier == order);
    let cents = |unit: &RmaUnit| unit.refund_financials().estimated_refund_amount_cents;
    let lines: Vec<_> = (1..)
        .zip(units.clone())
        .map(|(number, unit)| {
            json!({ "identifier": format!("{id}-{number}"), "quantity": 1,
                    "order_item_identifier": unit.id.order_line_item_identifier })
        })
        .collect();
    let now = Clock::system().now();
    // With strict refund dates, a refund must be dated in the future.
    let refunded_at = now + Duration::from_secs(24 * 60 * 60);
    let refund = json!({
        "identifier": id, "total_refund_amount_cents": units.map(cents).sum::<i64>(),
        "refund_line_items": lines, "created_at": refunded_at, "rma_identifier": id,
    });
    if let Some(Value::Array(refunds)) = document.get_mut("refunds") {
        refunds.push(refund);
    }
    document.insert("updated_at".to_owned(), json!(next_update(document, now)));
    let message = json!({ "returns_portal_order": { "orders": [document] } });
    let order_intake = order_intake.with_header("Api-Version", "3");
    order_intake.post(&["returns_portal_orders"], &message).await?;
    Ok(())
}

/// A time after the order's last update: an older snapshot is ignored as stale.
fn next_update(document: &Map<String, Value>, now: Timestamp) -> Timestamp {
    let last = document.get("updated_at").and_then(Value::as_str);
    let last = last.and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(now);
    now.max(last + Duration::from_secs(1))
}

pub(super) async fn wait_for_refund(client: &ApiClient, rma: &str) -> anyhow::Result<Value> {
    let started_at = Instant::now();
    loop {
        let found = client.get(&["v1", "returns", rma]).await?;
        if found.get("status") == Some(&json!(RmaStatus::Refunded.as_str())) {
            return Ok(found);
        }
        if started_at.elapsed() > REFUND_TIMEOUT {
            bail!("{rma} is not refunded within {REFUND_TIMEOUT:?}");
        }
        sleep(POLL_INTERVAL).await;
    }
}
