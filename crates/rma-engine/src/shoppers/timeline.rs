//! The timeline of a return as its shopper sees it: no actors, no messages and no internal detail.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::returns::{
    ReceivingStatus, Resolution, ReturnMethod, Rma, RmaUnit, TrackingEvent, UnitId,
};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::Error;
use crate::store::timeline::TimelineEntry;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperTimeline {
    /// Oldest first.
    pub(crate) entries: Vec<ShopperEntry>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A step of a return. A step repeats if the units travel in several parcels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperEntry {
    at: DateTime<Utc>,
    step: ShopperStep,
    /// The tracking number of a parcel, or the identifier of an exchange order.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShopperStep {
    Requested,
    /// The shopper keeps the units.
    Keep,
    LabelReady,
    DroppedOff,
    InTransit,
    /// The carrier delivered the parcel.
    Arrived,
    /// The warehouse has a unit.
    Received,
    Refunded,
    ExchangePlaced,
    GiftCardIssued,
    Canceled,
    /// The merchant let the return start after a review.
    Approved,
    /// The merchant declined the return in a review.
    Declined,
    /// The return was canceled, because no carrier had scanned a parcel in time.
    Expired,
}

/// The steps that an entry means to the shopper. A report that changed nothing means none.
pub(crate) fn steps(entry: &TimelineEntry, rma: &Rma) -> Result<Vec<ShopperEntry>, Error> {
    let text = |name: &str| entry.detail.get(name).and_then(Value::as_str);
    let changed = changed_units(entry, rma)?;
    let (steps, detail) = match text("cause").unwrap_or_default() {
        _ if changed.is_empty() => (Vec::new(), None),
        "confirmation" => (started(rma, ShopperStep::Requested), None),
        "request" => (vec![ShopperStep::Requested], None),
        "approval" => (started(rma, ShopperStep::Approved), None),
        "decline" => (vec![ShopperStep::Declined], None),
        "cancellation" => (vec![ShopperStep::Canceled], None),
        "expiry" => (vec![ShopperStep::Expired], None),
        "carrier report" | "label response" => {
            let event = text("event").and_then(|event| event.parse().ok());
            (event.and_then(parcel_step).into_iter().collect(), text("tracking_number"))
        }
        "receipt" if changed.iter().any(|it| it.receiving_status == ReceivingStatus::Received) => {
            (vec![ShopperStep::Received], None)
        }
        "exchange placed" => (replaced(&changed), text("exchange_order_identifier")),
        "refund" | "refund assigned" => (vec![ShopperStep::Refunded], None),
        _ => (Vec::new(), None),
    };
    let detail = detail.map(str::to_owned);
    let entry = |step| ShopperEntry { at: entry.at, step, detail: detail.clone() };
    Ok(steps.into_iter().map(entry).collect())
}

/// The units that an entry names. An entry of a report that changed nothing names none.
fn changed_units<'a>(entry: &TimelineEntry, rma: &'a Rma) -> Result<Vec<&'a RmaUnit>, Error> {
    let Some(units) = entry.detail.get("units") else { return Ok(Vec::new()) };
    let changed = HashSet::<UnitId>::deserialize(units).map_err(|error| {
        Error::Internal(format!("the units of timeline entry {}: {error}", entry.position))
    })?;
    Ok(rma.units.iter().filter(|unit| changed.contains(&unit.id)).collect())
}

/// The steps of a return that starts with this one.
fn started(rma: &Rma, first: ShopperStep) -> Vec<ShopperStep> {
    match rma.return_method {
        ReturnMethod::CustomerKeep => vec![first, ShopperStep::Keep],
        ReturnMethod::MailBack | ReturnMethod::ExpressReturns => vec![first],
    }
}

fn parcel_step(event: TrackingEvent) -> Option<ShopperStep> {
    match event {
        TrackingEvent::Label => Some(ShopperStep::LabelReady),
        TrackingEvent::Accepted => Some(ShopperStep::DroppedOff),
        TrackingEvent::InTransit => Some(ShopperStep::InTransit),
        TrackingEvent::Delivered => Some(ShopperStep::Arrived),
        TrackingEvent::NotDroppedOff | TrackingEvent::Failure | TrackingEvent::Returned => None,
    }
}

/// One exchange order may contain both variants and a gift card.
fn replaced(units: &[&RmaUnit]) -> Vec<ShopperStep> {
    let is_card = |unit: &RmaUnit| unit.resolution == Resolution::GiftCard;
    let exchange = units.iter().any(|unit| !is_card(unit)).then_some(ShopperStep::ExchangePlaced);
    let card = units.iter().any(|unit| is_card(unit)).then_some(ShopperStep::GiftCardIssued);
    exchange.into_iter().chain(card).collect()
}
