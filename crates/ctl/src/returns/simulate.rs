//! `backhaul returns simulate`: every message of a refunded return, before the first shopper.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use domain::access::Scope;
use domain::returns::{ReturnMethod, Rma, RmaStatus, RmaUnit};
use platform::{Clock, Timestamp};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::api_client::ApiClient;
use crate::delivery_services::is_not_found;
use crate::output::{Format, count, items, print, text_at};
use crate::service_urls::ORDERS;
use crate::settings::Settings;

/// Limit for the refund to get from the order intake to the return.
const REFUND_TIMEOUT: Duration = Duration::from_secs(30);
/// Further orders are not searched for returnable units.
const MAX_ORDERS: usize = 50;
const SCOPES: [Scope; 4] = [Scope::Orders, Scope::Returns, Scope::Carrier, Scope::Warehouse];
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(super) struct Simulate {
    /// Order whose returnable units are returned [default: the newest that has any]
    order: Option<String>,
    /// Return reason, one of the merchant's codes [default: the first]
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
}

impl Simulate {
    pub(super) async fn run(self, client: &ApiClient, format: Format) -> anyhow::Result<()> {
        let report = |text: &str| match format {
            Format::Text => print(&format!("{text}\n")),
            Format::Json => Ok(()),
        };
        // Without one of these the simulation would end half-way.
        client.require_scopes(&SCOPES)?;
        let order_intake = client.at_service(ORDERS, &Settings::load()?)?;
        let (order, returnable) = match &self.order {
            Some(order) => (order.clone(), returnable(client, order).await?),
            None => find_returnable(client, &order_intake).await?,
        };
        let rma = self.create(client, &order, &returnable).await?;
        let id = rma.rma_identifier.clone();
        let units = count(rma.units.len().try_into().unwrap_or(u64::MAX), "unit");
        report(&format!("{id} is created with {units} of order {order}: rma.created"))?;
        let is_sent_back = rma.return_method != ReturnMethod::CustomerKeep;
        if is_sent_back {
            for (event, text) in [
                ("label", "has a label: rma.tracking_updated"),
                ("accepted", "is dropped off: rma.dropped_off"),
                ("in_transit", "is scanned by the carrier: rma.in_transit"),
            ] {
                report_carrier_event(client, &id, event).await?;
                report(&format!("{id} {text}"))?;
            }
        }
        if rma.managed_receiving && is_sent_back {
            receive(client, &rma).await?;
            report(&format!("{id} is received: rma.received"))?;
        }
        refund(&order_intake, &order, &rma).await?;
        let refunded = wait_for_refund(client, &id).await?;
        report(&format!("{id} is refunded: rma.refunded"))?;
        format.print(&refunded, |_| String::new())
    }

    async fn create(
        &self,
        client: &ApiClient,
        order_identifier: &str,
        order: &Value,
    ) -> anyhow::Result<Rma> {
        let reason = match &self.reason {
            Some(reason) => json!(reason),
            None => order.pointer("/reasons/0/code").cloned().unwrap_or_default(),
        };
        let part = |unit: &Value, name: &str| unit.get(name).cloned().unwrap_or_default();
        let units: Vec<_> = returnable_units(order)
            .map(|unit| {
                json!({
                    "order_identifier": part(unit, "order_identifier"),
                    "order_line_item_identifier": part(unit, "order_line_item_identifier"),
                    "unit": part(unit, "unit"), "return_reason": reason, "resolution": "refund",
                })
            })
            .collect();
        if units.is_empty() {
            bail!("order {order_identifier} has no returnable units{}", reasons(order));
        }
        let request = json!({ "return_method": choose_method(order), "units": units });
        let created = client.post(&["v1", "returns"], &request).await?;
        Rma::deserialize(created).context("the response is not a return")
    }
}

/// An order with its units and the reasons why some cannot be returned.
async fn returnable(client: &ApiClient, order: &str) -> anyhow::Result<Value> {
    client.get(&["v1", "orders", order, "returnable"]).await
}

fn returnable_units(order: &Value) -> impl Iterator<Item = &Value> {
    let units = items(order, "/units").iter();
    units.filter(|unit| unit.get("returnable") == Some(&json!(true)))
}

/// The reasons why the units of an order cannot be returned, each once.
fn reasons(order: &Value) -> String {
    let units = items(order, "/units").iter();
    let mut reasons: Vec<_> = units.map(|unit| text_at(unit, "/ineligible/detail")).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}

/// The newest order that has returnable units.
async fn find_returnable(
    client: &ApiClient,
    order_intake: &ApiClient,
) -> anyhow::Result<(String, Value)> {
    let query = [("sort", "newest")];
    let orders = order_intake.list(&["v1", "orders"], "orders", &query, MAX_ORDERS).await?;
    let orders = items(&orders, "/orders");
    for order in orders.iter().map(|order| text_at(order, "/identifier")) {
        match returnable(client, &order).await {
            Ok(found) if returnable_units(&found).next().is_some() => return Ok((order, found)),
            Ok(_) => {}
            // The RMA engine may not have the order yet.
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    bail!(
        "none of the newest {} has returnable units: publish an order that has shipped, or name one",
        count(orders.len().try_into().unwrap_or(u64::MAX), "order")
    )
}

/// Chooses mail-back if the merchant offers it, because it sends the most messages.
fn choose_method(order: &Value) -> Option<&str> {
    let mut methods =
        items(order, "/methods").iter().filter_map(|offer| offer.get("method")?.as_str());
    let mail_back = ReturnMethod::MailBack.as_str();
    methods.clone().find(|method| *method == mail_back).or_else(|| methods.next())
}

async fn report_carrier_event(client: &ApiClient, rma: &str, event: &str) -> anyhow::Result<()> {
    let tracking_number = format!("SIM-{rma}");
    let report = json!({
        "event_identifier": format!("{tracking_number}-{event}"), "event": event,
        "rma_identifier": rma, "tracking_number": tracking_number,
    });
    client.post(&["v1", "carrier_events"], &report).await?;
    Ok(())
}

async fn receive(client: &ApiClient, rma: &Rma) -> anyhow::Result<()> {
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

/// Publishes the order again, with a refund of every unit.
async fn refund(order_intake: &ApiClient, order: &str, rma: &Rma) -> anyhow::Result<()> {
    let mut stored = order_intake.get(&["v1", "orders", order]).await?;
    let Some(Value::Object(document)) = stored.get_mut("document") else {
        bail!("order {order} has no document");
    };
    let id = &rma.rma_identifier;
    let cents = |unit: &RmaUnit| unit.refund_financials().estimated_refund_amount_cents;
    let lines: Vec<_> = (1..)
        .zip(&rma.units)
        .map(|(number, unit)| {
            json!({ "identifier": format!("{id}-{number}"), "quantity": 1,
                    "order_item_identifier": unit.id.order_line_item_identifier })
        })
        .collect();
    let now = Clock::system().now();
    // With strict refund dates, a refund must be dated in the future.
    let refunded_at = now + Duration::from_secs(24 * 60 * 60);
    let refund = json!({
        "identifier": id, "total_refund_amount_cents": rma.units.iter().map(cents).sum::<i64>(),
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

async fn wait_for_refund(client: &ApiClient, rma: &str) -> anyhow::Result<Value> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_back_is_preferred_among_the_offered_methods() {
        let check = |offered: &[&str], expected: Option<&str>| {
            let offers: Vec<_> = offered.iter().map(|it| json!({ "method": it })).collect();
            assert_eq!(choose_method(&json!({ "methods": offers })), expected);
        };
        check(&["express-returns", "mail-back"], Some("mail-back"));
        check(&["express-returns", "customer-keep"], Some("express-returns"));
        check(&["customer-keep"], Some("customer-keep"));
        check(&[], None);
    }
}
