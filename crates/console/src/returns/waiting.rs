//! The reasons why a return is not finished, in sentences.

use domain::returns::{
    ExchangeStatus, ReceivingStatus, ReturnMethod, Rma, RmaUnit, TrackingStatus,
};

use super::active_units;

const UNDELIVERABLE: &str = "could not be exchanged: the merchant did not accept the exchange order. An \
                             operator replays or abandons it";
const EXCHANGE: &str = "waits for the merchant's response to the exchange order";
const LABEL: &str = "waits for the carrier's label";
const HAND_OVER: &str = "has a label and waits for the shopper to hand over the parcel";
const ON_ITS_WAY: &str = "is on its way";
const PROBLEM: &str = "is in a parcel for which the carrier reports a problem";
const SENT_BACK: &str = "is in a parcel that went back to the shopper";
const RECEIPT: &str = "arrived and waits for the warehouse to receive it";
const REFUND: &str = "arrived and waits for the merchant's refund";
const REVIEW: &str =
    "The return waits for review. Nothing else happens until a person or the deadline decides.";
const KEPT: &str = "stays with the shopper and waits for the merchant's refund";

/// Tone and sentence for each event that the return waits for. Empty for a return that is finished.
pub(super) fn reasons(rma: &Rma) -> Vec<(&'static str, String)> {
    if rma.is_in_review() {
        return vec![("warn", REVIEW.to_owned())];
    }
    if !rma.status.is_open() {
        return Vec::new();
    }
    let open: Vec<&RmaUnit> = active_units(rma).filter(|unit| unit.refunded_by.is_none()).collect();
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    let waits = open.iter().filter_map(|unit| exchange(unit));
    for text in waits.chain(open.iter().filter_map(|unit| parcel(rma, unit))) {
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    let shown = |(text, units)| (tone(text), sentence(units, open.len(), text));
    counts.into_iter().map(shown).collect()
}

fn tone(text: &str) -> &'static str {
    match text {
        UNDELIVERABLE => "bad",
        PROBLEM | SENT_BACK => "warn",
        _ => "",
    }
}

fn exchange(unit: &RmaUnit) -> Option<&'static str> {
    match unit.exchange_status? {
        ExchangeStatus::Undeliverable => Some(UNDELIVERABLE),
        ExchangeStatus::Pending => Some(EXCHANGE),
        ExchangeStatus::Placed | ExchangeStatus::Failed => None,
    }
}

fn parcel(rma: &Rma, unit: &RmaUnit) -> Option<&'static str> {
    let is_unreceived = rma.managed_receiving && unit.receiving_status == ReceivingStatus::Pending;
    match unit.package_tracking_status {
        _ if rma.return_method == ReturnMethod::CustomerKeep => Some(KEPT),
        _ if unit.receiving_status == ReceivingStatus::Received => Some(REFUND),
        Some(TrackingStatus::PreTransit | TrackingStatus::NotDroppedOff) => Some(HAND_OVER),
        Some(TrackingStatus::Accepted | TrackingStatus::Transit) => Some(ON_ITS_WAY),
        Some(TrackingStatus::Failure) => Some(PROBLEM),
        Some(TrackingStatus::Returned) => Some(SENT_BACK),
        Some(TrackingStatus::Delivered) if is_unreceived => Some(RECEIPT),
        Some(TrackingStatus::Delivered) => Some(REFUND),
        _ if unit.tracking_number.is_none() => Some(LABEL),
        _ => None,
    }
}

/// "The unit waits …", "Each of the 3 units waits …" or "1 of 3 units waits …".
fn sentence(units: usize, all: usize, text: &str) -> String {
    match (units, all) {
        (1, 1) => format!("The unit {text}."),
        (units, all) if units == all => format!("Each of the {all} units {text}."),
        (units, all) => format!("For {units} of {all} units: it {text}."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn a_finished_return_waits_for_nothing() {
        assert!(reasons(&fixtures::rma("REFUNDED", &[json!({})])).is_empty());
        assert!(reasons(&fixtures::rma("CANCELED", &[json!({})])).is_empty());
        assert!(reasons(&fixtures::rma("DECLINED", &[json!({})])).is_empty());
    }

    #[test]
    fn a_return_in_review_waits_for_the_decision_only() {
        let reasons = reasons(&fixtures::rma("REQUESTED", &[json!({}), json!({})]));
        assert_eq!(reasons, [("warn", REVIEW.to_owned())]);
    }

    #[test]
    fn a_return_waits_for_the_next_event_of_each_unit() {
        let one = |fields| {
            let mut reasons = reasons(&fixtures::rma("CREATED", &[fields]));
            assert_eq!(reasons.len(), 1);
            reasons.remove(0)
        };
        assert_eq!(one(json!({})), ("", "The unit waits for the carrier's label.".to_owned()));
        let labeled = json!({ "tracking_number": "1Z", "package_tracking_status": "PRE_TRANSIT" });
        assert!(one(labeled).1.contains("waits for the shopper to hand over the parcel"));
        let arrived = json!({ "tracking_number": "1Z", "package_tracking_status": "DELIVERED" });
        assert_eq!(one(arrived).1, "The unit arrived and waits for the merchant's refund.");
    }

    #[test]
    fn an_undeliverable_exchange_order_needs_an_operator() {
        let moving = json!({ "tracking_number": "1Z", "package_tracking_status": "TRANSIT" });
        let mut stuck = moving.clone();
        stuck.as_object_mut().unwrap().insert("exchange_status".into(), json!("undeliverable"));
        let reasons = reasons(&fixtures::rma("CREATED", &[moving, stuck]));
        let (tone, text) = &reasons[0];
        assert_eq!(*tone, "bad");
        assert!(text.starts_with("For 1 of 2 units: it could not be exchanged"), "{text}");
        assert_eq!(reasons[1], ("", "Each of the 2 units is on its way.".to_owned()));
    }
}
