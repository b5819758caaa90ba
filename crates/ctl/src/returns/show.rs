//! A return in words.

use domain::returns::{Rma, RmaUnit};
use platform::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::output::{or_dash, properties, table, time, yes_or_no};

/// A return and what happened to it.
#[derive(Deserialize)]
pub(super) struct Told {
    #[serde(rename = "return")]
    rma: Rma,
    timeline: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    at: Timestamp,
    actor: String,
    event: String,
    delivery: Option<Uuid>,
}

pub(super) fn tabulate(returns: &[Rma]) -> String {
    let row = |rma: &Rma| {
        let orders = rma.units.iter().map(|unit| unit.id.order_identifier.as_str());
        let mut orders: Vec<_> = orders.collect();
        orders.dedup();
        [
            rma.rma_identifier.clone(),
            time(&rma.created_at),
            rma.status.to_string(),
            rma.return_method.to_string(),
            rma.active_units().count().to_string(),
            orders.join(", "),
            or_dash(tracking(rma)),
        ]
    };
    let headings = ["rma", "created", "status", "method", "units", "orders", "tracking"];
    table(headings, returns.iter().map(row))
}

pub(super) fn describe(told: &Told) -> String {
    let row = |entry: &Entry| {
        [time(&entry.at), entry.event.clone(), entry.actor.clone(), or_dash(entry.delivery)]
    };
    let headings = ["time", "what", "who", "message"];
    let timeline = table(headings, told.timeline.iter().map(row));
    format!("{}\n{timeline}", properties_of(&told.rma))
}

pub(super) fn properties_of(rma: &Rma) -> String {
    let head = properties([
        ("rma", rma.rma_identifier.clone()),
        ("status", rma.status.to_string()),
        ("method", rma.return_method.to_string()),
        ("shipping cost", rma.return_shipping_cost_cents.to_string()),
        ("giftee", or_dash(rma.giftee_email.as_ref())),
        ("managed receiving", yes_or_no(rma.managed_receiving)),
        ("created", time(&rma.created_at)),
        ("changed", time(&rma.updated_at)),
    ]);
    let row = |unit: &RmaUnit| {
        let id = &unit.id;
        [
            format!("{}/{}:{}", id.order_identifier, id.order_line_item_identifier, id.unit),
            unit.sku.clone(),
            unit.return_reason.clone(),
            unit.refund_type.to_string(),
            unit.refund_financials().estimated_refund_amount_cents.to_string(),
            or_dash(unit.package_tracking_status),
            or_dash(rma.managed_receiving.then_some(unit.receiving_status)),
            or_dash(unit.exchange_order_identifier.as_ref()),
            or_dash(unit.refunded_by.as_ref()),
        ]
    };
    let headings =
        ["unit", "sku", "reason", "for", "cents", "parcel", "received", "exchange order", "refund"];
    format!("{head}\n{}", table(headings, rma.active_units().map(row)))
}

fn tracking(rma: &Rma) -> Option<&String> {
    rma.active_units().find_map(|unit| unit.tracking_number.as_ref())
}
