//! A return as rma-engine shows it to its shopper.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::{
    labels::{LabelFormat, LabelState, RefusalReason},
    printable::{self, printable},
    returns::{ExchangeStatus, Label, RmaStatus, TrackingStatus, UnitId, Withdrawal},
};
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;

use crate::{draft::Resolution, merchant::Portal, page::Page, visit::Visit};

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Return {
    pub(crate) rma_identifier: String,
    pub(crate) status: RmaStatus,
    pub(crate) created_at: DateTime<Utc>,
    /// `mail-back`, `express-returns` or `customer-keep`.
    pub(crate) return_method: String,
    /// Absent for a gift.
    pub(crate) return_shipping_cost_cents: Option<i64>,
    #[serde(default)]
    pub(crate) currency: String,
    /// The person who withdrew from the contract; absent if the shop recorded the withdrawal.
    pub(crate) withdrawal: Option<Withdrawal>,
    #[serde(default)]
    pub(crate) is_cancelable: bool,
    /// The time until which the units should be handed over.
    pub(crate) send_by: Option<DateTime<Utc>>,
    /// Present if the shop looks or looked at the return before it started.
    pub(crate) review: Option<Review>,
    #[serde(default)]
    pub(crate) units: Vec<Unit>,
    /// The newest label request of each parcel. Empty without a label provider.
    #[serde(default)]
    pub(crate) labels: Vec<LabelRequest>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LabelRequest {
    #[serde(default)]
    pub(crate) label_request_id: String,
    /// The units in the parcel.
    #[serde(default)]
    pub(crate) units: Vec<UnitId>,
    pub(crate) state: LabelState,
    pub(crate) tracking_number: Option<String>,
    /// The format of a label that is a file.
    pub(crate) document: Option<LabelFormat>,
    /// The text of the code that the carrier scans.
    pub(crate) qr_code: Option<String>,
    /// Whether the shopper can request an expired label again.
    #[serde(default)]
    pub(crate) is_renewable: bool,
    /// The reason why no label is possible.
    pub(crate) refusal: Option<RefusalReason>,
}

/// The review of a return by the shop.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Review {
    /// The merchant's rule that asked for it.
    rule: String,
    /// The time until which the shop decides.
    due_at: DateTime<Utc>,
    /// The shop's note about a declined return.
    note: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Unit {
    pub(crate) order_identifier: String,
    pub(crate) order_line_item_identifier: String,
    #[serde(default, deserialize_with = "printable::deserialize")]
    pub(crate) title: String,
    pub(crate) image_url: Option<String>,
    #[serde(default)]
    pub(crate) return_reason: String,
    #[serde(default)]
    resolution: String,
    pub(crate) variant: Option<Variant>,
    /// The price in the shop; absent for a gift.
    product_amount_cents: Option<i64>,
    /// Absent for a gift.
    pub(crate) refund_financials: Option<Financials>,
    #[serde(default)]
    pub(crate) is_refunded: bool,
    pub(crate) exchange_status: Option<ExchangeStatus>,
    pub(crate) exchange_order_identifier: Option<String>,
    pub(crate) tracking_number: Option<String>,
    pub(crate) package_tracking_status: Option<TrackingStatus>,
    pub(crate) label: Option<Label>,
    pub(crate) canceled_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) is_expired: bool,
}

/// The variant that the shopper gets.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Variant {
    #[serde(default, deserialize_with = "printable::deserialize")]
    pub(crate) title: String,
    unit_price_amount_cents: Option<i64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Financials {
    /// The amount that was paid for the unit.
    #[serde(default)]
    pub(crate) estimated_refund_amount_cents: i64,
    #[serde(default)]
    pub(crate) shopper_refund_amount_cents: i64,
}

impl Unit {
    /// The resolution for the unit. A unit whose exchange failed is refunded.
    pub(crate) fn resolution(&self) -> Resolution {
        if self.exchange_status == Some(ExchangeStatus::Failed) {
            return Resolution::Refund;
        }
        Resolution::from_value(&self.resolution).unwrap_or(Resolution::Refund)
    }

    /// The price of the variant, less that of the unit. Absent if one of them is not known.
    pub(crate) fn price_difference(&self) -> Option<i64> {
        let variant = self.variant.as_ref()?.unit_price_amount_cents?;
        Some(variant.saturating_sub(self.product_amount_cents?))
    }

    /// The distance that the unit's parcel has come: 0 before the drop-off, 3 at the warehouse.
    pub(crate) fn progress(&self) -> u8 {
        match self.package_tracking_status {
            None | Some(TrackingStatus::PreTransit | TrackingStatus::NotDroppedOff) => 0,
            Some(TrackingStatus::Accepted) => 1,
            Some(TrackingStatus::Transit | TrackingStatus::Failure | TrackingStatus::Returned) => 2,
            Some(TrackingStatus::Delivered) => 3,
        }
    }
}

impl Return {
    pub(crate) async fn load(visit: &Visit, rma: &str) -> Result<Self, ApiError> {
        let path = path!("v1", "returns", rma);
        visit.api.get_for(Service::RmaEngine, visit.merchant(), &path, &[]).await
    }

    /// The units that are not canceled.
    pub(crate) fn active_units(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(|unit| unit.canceled_at.is_none())
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.return_method == "customer-keep"
    }

    /// Whether the return can still change.
    pub(crate) fn is_open(&self) -> bool {
        self.is_in_review() || self.is_started()
    }

    /// Whether the shop looks at the return before it starts.
    pub(crate) fn is_in_review(&self) -> bool {
        self.status == RmaStatus::Requested
    }

    pub(crate) fn is_declined(&self) -> bool {
        self.status == RmaStatus::Declined
    }

    /// Whether the return has started and is not closed.
    fn is_started(&self) -> bool {
        matches!(self.status, RmaStatus::Created | RmaStatus::PartialRefund)
    }

    /// The last day on which the shop decides about the return.
    pub(crate) fn review_day(&self, portal: &Portal) -> Option<NaiveDate> {
        let review = self.review.as_ref().filter(|_| self.is_in_review())?;
        // The time is midnight after the day.
        Some(portal.day(&(review.due_at - TimeDelta::seconds(1))))
    }

    /// Why the shop declined the return: its note, or else its words about the rule.
    pub(crate) fn decline_reason(&self, page: &Page) -> Option<String> {
        let review = self.review.as_ref().filter(|_| self.is_declined())?;
        let of_rule = || page.portal.rule_text(Some(review.rule.as_str()), page.language);
        let reason = review.note.as_deref().or_else(of_rule)?;
        Some(printable(&reason.lines().collect::<Vec<_>>().join(" ")))
    }

    /// Whether the shopper still has something to send back.
    pub(crate) fn needs_drop_off(&self) -> bool {
        let is_waiting = self.active_units().any(|unit| unit.progress() == 0 && !unit.is_refunded);
        self.is_started() && !self.is_kept() && is_waiting
    }

    /// The last day on which the shopper can drop off the parcel, if there is one.
    pub(crate) fn drop_off_day(&self, portal: &Portal) -> Option<NaiveDate> {
        // The time is midnight after the day.
        self.send_by.map(|end| portal.day(&(end - TimeDelta::seconds(1))))
    }

    /// Whether the return was canceled because nothing was sent in time.
    pub(crate) fn is_expired(&self) -> bool {
        self.status == RmaStatus::Canceled && self.units.iter().any(|unit| unit.is_expired)
    }

    /// Whether the shopper withdrew from the contract.
    pub(crate) fn is_withdrawal(&self) -> bool {
        self.units.iter().any(|unit| unit.return_reason == "withdrawal")
    }

    /// The orders of the units, each once.
    pub(crate) fn orders(&self) -> Vec<&str> {
        let mut orders: Vec<_> =
            self.units.iter().map(|unit| unit.order_identifier.as_str()).collect();
        orders.sort_unstable();
        orders.dedup();
        orders
    }

    /// The id of the sentence about the state of the return.
    pub(crate) fn state(&self) -> &'static str {
        let furthest = self.active_units().map(Unit::progress).max().unwrap_or_default();
        match (self.status, furthest) {
            _ if self.is_expired() => "returns-state-expired",
            (RmaStatus::Requested, _) => "returns-state-review",
            (RmaStatus::Declined, _) => "returns-state-declined",
            (RmaStatus::Canceled, _) => "returns-state-canceled",
            (RmaStatus::Refunded, _) => "returns-state-refunded",
            (RmaStatus::PartialRefund, _) => "returns-state-partial",
            _ if self.is_kept() => "returns-state-kept",
            (RmaStatus::Created, 0) => "returns-state-requested",
            (RmaStatus::Created, 1) => "returns-state-dropped-off",
            (RmaStatus::Created, 2) => "returns-state-on-its-way",
            (RmaStatus::Created, _) => "returns-state-arrived",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A return with a unit for each of the given fields.
    pub(crate) fn rma(units: &[Value]) -> Return {
        let unit = |fields: &Value| {
            let mut unit = json!({
                "order_identifier": "A-1", "order_line_item_identifier": "10", "title": "Tee, L",
                "resolution": "refund", "return_reason": "withdrawal",
                "refund_financials": {
                    "estimated_refund_amount_cents": 2165, "shopper_refund_amount_cents": 2165,
                },
            });
            for (name, value) in fields.as_object().unwrap() {
                unit[name] = value.clone();
            }
            unit
        };
        serde_json::from_value(json!({
            "rma_identifier": "RMA-1", "status": "CREATED", "created_at": "2026-11-16T09:30:00Z",
            "return_method": "mail-back", "return_shipping_cost_cents": 500, "currency": "EUR",
            "is_cancelable": true, "send_by": "2026-12-01T00:00:00Z", "units": units.iter().map(unit).collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    #[test]
    fn a_title_cannot_change_the_text_around_it() {
        let title = "Tee\u{202e}";
        let found = rma(&[json!({ "title": title, "variant": { "title": title } })]);
        let unit = found.units.first().unwrap();
        assert_eq!(unit.title, "Tee\u{fffd}");
        assert_eq!(unit.variant.as_ref().unwrap().title, "Tee\u{fffd}");
    }

    #[test]
    fn the_state_is_that_of_the_parcel_that_came_furthest() {
        let state = |status: &str| rma(&[json!({ "package_tracking_status": status })]).state();
        assert_eq!(rma(&[json!({})]).state(), "returns-state-requested");
        assert_eq!(state("PRE_TRANSIT"), "returns-state-requested");
        assert_eq!(state("ACCEPTED"), "returns-state-dropped-off");
        assert_eq!(state("TRANSIT"), "returns-state-on-its-way");
        assert_eq!(state("DELIVERED"), "returns-state-arrived");
        let mut kept = rma(&[json!({})]);
        "customer-keep".clone_into(&mut kept.return_method);
        assert_eq!((kept.state(), kept.needs_drop_off()), ("returns-state-kept", false));
        kept.status = RmaStatus::Canceled;
        assert_eq!(kept.state(), "returns-state-canceled");
        let mut expired =
            rma(&[json!({ "canceled_at": "2026-12-01T00:00:01Z", "is_expired": true })]);
        expired.status = RmaStatus::Canceled;
        assert_eq!(expired.state(), "returns-state-expired");
    }

    /// A return in review, or decided in it.
    pub(crate) fn reviewed(status: &str, review: &Value) -> Return {
        let mut rma = rma(&[json!({ "resolution": "exchange", "exchange_status": null })]);
        rma.status = status.parse().unwrap();
        let mut fields = json!({ "rule": "sale", "due_at": "2026-11-20T00:00:00Z" });
        for (name, value) in review.as_object().unwrap() {
            fields[name] = value.clone();
        }
        rma.review = Some(serde_json::from_value(fields).unwrap());
        rma
    }

    #[test]
    fn a_return_in_review_has_nothing_to_send() {
        let waiting = reviewed("REQUESTED", &json!({}));
        assert!(waiting.is_open() && !waiting.needs_drop_off());
        assert_eq!(waiting.state(), "returns-state-review");
        assert_eq!(waiting.review_day(&Portal::default()).unwrap().to_string(), "2026-11-19");
        let approved = reviewed("CREATED", &json!({ "decision": "approve" }));
        assert!(approved.needs_drop_off());
        assert_eq!(approved.review_day(&Portal::default()), None);
    }

    #[test]
    fn a_declined_return_has_the_reason_of_the_shop() {
        let page = crate::basket::tests::page();
        let declined =
            |note: Value| reviewed("DECLINED", &json!({ "decision": "decline", "note": note }));
        let reason = |note: Value| declined(note).decline_reason(&page);
        assert_eq!(reason(json!("Worn\nitems\u{202e}")), Some("Worn items\u{fffd}".to_owned()));
        assert_eq!(reason(Value::Null), Some("Sale items stay yours.".to_owned()));
        let state = declined(Value::Null).state();
        assert_eq!((state, declined(Value::Null).is_open()), ("returns-state-declined", false));
    }

    #[test]
    fn a_parcel_is_dropped_off_on_the_last_day_at_the_latest() {
        let mut return_ = rma(&[json!({})]);
        assert!(return_.needs_drop_off());
        assert_eq!(return_.drop_off_day(&Portal::default()).unwrap().to_string(), "2026-11-30");
        return_.status = RmaStatus::Canceled;
        assert!(!return_.needs_drop_off());
        assert!(!rma(&[json!({ "package_tracking_status": "ACCEPTED" })]).needs_drop_off());
    }
}
