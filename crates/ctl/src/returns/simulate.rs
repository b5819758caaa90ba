//! Acting a return out, so that a merchant sees every message before the first shopper does.

use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use domain::returns::{ReturnMethod, Rma, RmaStatus};
use platform::{Clock, Timestamp};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::operator::Operator;
use crate::output::{Format, print};
use crate::party::Party;
use crate::places::ORDERS;

/// How long the refund may take from the order's snapshot to the return.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(super) struct Simulate {
    /// The order; everything of it that can be returned is
    order: String,
    /// Why, one of the merchant's codes; its first unless given
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
}

impl Simulate {
    pub(super) async fn act(self, party: &Party, engine: &Operator) -> anyhow::Result<()> {
        let say = |what: &str| match party.format() {
            Format::Text => print(&format!("{what}\n")),
            Format::Json => Ok(()),
        };
        let shop = engine.elsewhere(ORDERS)?;
        let rma = self.create(engine).await?;
        let id = rma.rma_identifier.clone();
        say(&format!("{id} is created with {} units: rma.created", rma.units.len()))?;
        let number = format!("SIM-{id}");
        let comes_back = rma.return_method != ReturnMethod::CustomerKeep;
        for (event, told) in [
            ("label", "has a label: rma.tracking_updated"),
            ("accepted", "is dropped off: rma.dropped_off"),
            ("in_transit", "is scanned by the carrier: rma.in_transit"),
        ]
        .into_iter()
        .filter(|_| comes_back)
        {
            let report = json!({
                "event_identifier": format!("{number}-{event}"), "event": event,
                "rma_identifier": id, "tracking_number": number,
            });
            engine.post(&["v1", "carrier_events"], members(report)).await?;
            say(&format!("{id} {told}"))?;
        }
        if rma.managed_receiving && comes_back {
            receive(engine, &rma).await?;
            say(&format!("{id} is received: rma.received"))?;
        }
        refund(&shop, &self.order, &rma).await?;
        let ended = await_refund(engine, &id).await?;
        say(&format!("{id} is refunded: rma.refunded"))?;
        if party.format() == Format::Json {
            party.format().show(ended, |rma: &Rma| rma.rma_identifier.clone())?;
        }
        Ok(())
    }

    async fn create(&self, engine: &Operator) -> anyhow::Result<Rma> {
        let found = engine.get(&["v1", "orders", &self.order, "returnable"]).await?;
        let reason = match &self.reason {
            Some(reason) => json!(reason),
            None => found.pointer("/reasons/0/code").cloned().unwrap_or_default(),
        };
        let units = found.get("units").and_then(Value::as_array).into_iter().flatten();
        let returnable = units.filter(|unit| unit.get("returnable") == Some(&json!(true)));
        let part = |unit: &Value, name: &str| unit.get(name).cloned().unwrap_or_default();
        let units: Vec<_> = returnable
            .map(|unit| {
                json!({
                    "order_identifier": part(unit, "order_identifier"),
                    "order_line_item_identifier": part(unit, "order_line_item_identifier"),
                    "unit": part(unit, "unit"), "return_reason": reason, "resolution": "refund",
                })
            })
            .collect();
        if units.is_empty() {
            bail!("nothing of order {} can be returned", self.order);
        }
        let request = json!({ "return_method": method(&found), "units": units });
        let made = engine.post(&["v1", "returns"], members(request)).await?;
        serde_json::from_value(made).context("an answer that is not ours")
    }
}

/// By mail where the merchant offers that, because most is told then; else its first way.
fn method(found: &Value) -> Option<&str> {
    let offered = found.get("methods").and_then(Value::as_array).into_iter().flatten();
    let mut methods = offered.filter_map(|offer| offer.get("method")?.as_str());
    let mail = ReturnMethod::MailBack.as_str();
    methods.clone().find(|method| *method == mail).or_else(|| methods.next())
}

async fn receive(engine: &Operator, rma: &Rma) -> anyhow::Result<()> {
    let findings: Vec<_> = rma
        .units
        .iter()
        .map(|unit| {
            let mut finding = json!(unit.id);
            if let Value::Object(finding) = &mut finding {
                finding.insert("finding".to_owned(), "received".into());
            }
            finding
        })
        .collect();
    let path = ["v1", "returns", &rma.rma_identifier, "receipts"];
    engine.post(&path, members(json!({ "findings": findings }))).await?;
    Ok(())
}

/// The shop publishes its order again, with a refund of every unit.
async fn refund(shop: &Operator, order: &str, rma: &Rma) -> anyhow::Result<()> {
    let mut stored = shop.get(&["v1", "orders", order]).await?;
    let Some(Value::Object(document)) = stored.get_mut("document") else {
        bail!("order {order} has no document");
    };
    let id = &rma.rma_identifier;
    let cents =
        |unit: &domain::returns::RmaUnit| unit.refund_financials().estimated_refund_amount_cents;
    let lines: Vec<_> = (1..)
        .zip(&rma.units)
        .map(|(number, unit)| {
            json!({ "identifier": format!("{id}-{number}"), "quantity": 1,
                    "order_item_identifier": unit.id.order_line_item_identifier })
        })
        .collect();
    let now = Clock::system().now();
    // Some merchants' refunds must be dated in the future.
    let refunded_at = now + Duration::from_secs(24 * 60 * 60);
    let refund = json!({
        "identifier": id, "total_refund_amount_cents": rma.units.iter().map(cents).sum::<i64>(),
        "refund_line_items": lines, "created_at": refunded_at, "rma_identifier": id,
    });
    if let Some(Value::Array(refunds)) = document.get_mut("refunds") {
        refunds.push(refund);
    }
    document.insert("updated_at".to_owned(), json!(later(document, now)));
    let message = json!({ "returns_portal_order": { "orders": [document] } });
    shop.with("Api-Version", "3").post(&["returns_portal_orders"], members(message)).await?;
    Ok(())
}

/// A time after the order's last change, or its new snapshot would be stale.
fn later(document: &Map<String, Value>, now: Timestamp) -> Timestamp {
    let last = document.get("updated_at").and_then(Value::as_str);
    let last = last.and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(now);
    now.max(last + Duration::from_secs(1))
}

async fn await_refund(engine: &Operator, rma: &str) -> anyhow::Result<Value> {
    let begun = Instant::now();
    loop {
        let found = engine.get(&["v1", "returns", rma]).await?;
        if found.get("status") == Some(&json!(RmaStatus::Refunded.as_str())) {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            bail!("{rma} is not refunded within {PATIENCE:?}");
        }
        sleep(Duration::from_millis(100)).await;
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_taken_that_the_merchant_offers() {
        let check = |offered: &[&str], taken: Option<&str>| {
            let offers: Vec<_> = offered.iter().map(|it| json!({ "method": it })).collect();
            assert_eq!(method(&json!({ "methods": offers })), taken);
        };
        check(&["express-returns", "mail-back"], Some("mail-back"));
        check(&["express-returns", "customer-keep"], Some("express-returns"));
        check(&["customer-keep"], Some("customer-keep"));
        check(&[], None);
    }
}
