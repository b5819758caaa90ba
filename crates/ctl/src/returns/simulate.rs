//! `backhaul returns simulate`: every message of a refunded return, before the first shopper.

mod events;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use domain::access::Scope;
use domain::printable::one_line;
use domain::returns::{Ineligible, ReturnMethod, Rma};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::events::{provider_label, receive, refund, report_carrier_event, wait_for_refund};
use crate::api_client::ApiClient;
use crate::delivery_services::is_not_found;
use crate::output::{Format, command, count, items, print, text_at};
use crate::service_urls::ORDERS;
use crate::settings::Settings;

/// Further orders are not searched for returnable units.
const MAX_ORDERS: usize = 50;
const SCOPES: [Scope; 4] = [Scope::Orders, Scope::Returns, Scope::Carrier, Scope::Warehouse];
const CARRIER_EVENTS: [(&str, &str); 4] = [
    ("label", "has a label: rma.tracking_updated"),
    ("accepted", "is dropped off: rma.dropped_off"),
    ("in_transit", "is scanned by the carrier: rma.in_transit"),
    ("delivered", "arrives: rma.tracking_updated"),
];

#[derive(Args)]
pub(crate) struct Simulate {
    /// Order whose returnable units are returned [default: the newest that has any]
    order: Option<String>,
    /// Return reason, one of the merchant's codes [default: the first]
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Continue this return, for example one of the portal, instead of creating one
    #[arg(long, value_name = "RMA", conflicts_with_all = ["order", "reason"])]
    rma: Option<String>,
    /// URL of the label that the carrier sends, in place of that of a label provider
    #[arg(long, value_name = "URL")]
    label_url: Option<String>,
    /// Pause before each event, to watch the pages of shopper and merchant
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pause: Duration,
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
        let (rma, text) = self.start(client, &order_intake).await?;
        let id = rma.rma_identifier.as_str();
        report(&format!("{id} {text}"))?;
        let is_sent_back = rma.return_method != ReturnMethod::CustomerKeep;
        let label = match &self.label_url {
            None if is_sent_back => provider_label(client, id).await?,
            _ => None,
        };
        if label.is_some() {
            report(&format!("{id} has a label of the label provider: rma.tracking_updated"))?;
        }
        let number = label.clone().unwrap_or_else(|| format!("SIM-{id}"));
        let is_left = |event: &str| is_sent_back && (event != "label" || label.is_none());
        for (event, text) in CARRIER_EVENTS.into_iter().filter(|(event, _)| is_left(event)) {
            sleep(self.pause).await;
            let label_url = self.label_url.as_deref().filter(|_| event == "label");
            report_carrier_event(client, (id, &number), event, label_url).await?;
            report(&format!("{id} {text}"))?;
        }
        if rma.managed_receiving && is_sent_back {
            sleep(self.pause).await;
            receive(client, &rma).await?;
            report(&format!("{id} is received: rma.received"))?;
        }
        sleep(self.pause).await;
        let orders = rma.units.iter().map(|unit| unit.id.order_identifier.as_str());
        for order in orders.collect::<BTreeSet<_>>() {
            refund(&order_intake, order, &rma).await?;
        }
        let refunded = wait_for_refund(client, id).await?;
        report(&format!("{id} is refunded: rma.refunded"))?;
        format.print(&refunded, |_| String::new())
    }

    /// The return to simulate, and how it starts.
    async fn start(
        &self,
        client: &ApiClient,
        order_intake: &ApiClient,
    ) -> anyhow::Result<(Rma, String)> {
        if let Some(rma) = &self.rma {
            let found = client.get(&["v1", "returns", rma]).await?;
            let rma = Rma::deserialize(found).context("the response is not a return")?;
            return unfinished(rma).map(|rma| (rma, "continues".to_owned()));
        }
        let (order, returnable) = match &self.order {
            Some(order) => (order.clone(), returnable(client, order).await?),
            None => find_returnable(client, order_intake).await?,
        };
        let rma = self.create(client, &order, &returnable).await?;
        let units = count(rma.units.len().try_into().unwrap_or(u64::MAX), "unit");
        Ok((rma, format!("is created with {units} of order {order}: rma.created")))
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
        unfinished(Rma::deserialize(created).context("the response is not a return")?)
    }
}

/// The return with the units that are neither canceled nor refunded.
fn unfinished(mut rma: Rma) -> anyhow::Result<Rma> {
    if rma.is_in_review() {
        let id = &rma.rma_identifier;
        let approve = command(&["returns", "approve", id]);
        bail!("{id} waits for review. Approve it first: {approve}");
    }
    if !rma.status.is_open() {
        bail!("{} is {}: nothing can follow", rma.rma_identifier, rma.status);
    }
    rma.units.retain(|unit| unit.canceled_at.is_none() && unit.refunded_by.is_none());
    Ok(rma)
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
    let reason =
        |unit: &Value| Some(Ineligible::deserialize(unit.get("ineligible")?).ok()?.in_words());
    let mut reasons: Vec<_> = units.filter_map(reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons.iter().map(|reason| format!("\n  {}", one_line(reason))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_open_return_can_continue() {
        let rma = |status: &str| {
            Rma::deserialize(json!({
                "merchant": "acme", "rma_identifier": "RMA-1", "status": status,
                "created_at": "2026-11-16T10:00:00Z", "updated_at": "2026-11-16T10:00:00Z",
                "return_method": "mail-back", "return_shipping_cost_cents": 0, "giftee_email": null,
                "managed_receiving": true, "receiving_closed_at": null, "canceled_at": null,
                "units": [],
            }))
            .unwrap()
        };
        assert!(unfinished(rma("CREATED")).is_ok());
        let error = unfinished(rma("REFUNDED")).unwrap_err().to_string();
        assert_eq!(error, "RMA-1 is REFUNDED: nothing can follow");
        let error = unfinished(rma("REQUESTED")).unwrap_err().to_string();
        let expected = "RMA-1 waits for review. Approve it first: backhaul returns approve RMA-1";
        assert_eq!(error, expected);
    }

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
