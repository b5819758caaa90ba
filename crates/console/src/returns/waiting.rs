//! The reasons why a return is not finished, in sentences.

use super::{Return, units::Unit};

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
const KEPT: &str = "stays with the shopper and waits for the merchant's refund";

/// Tone and sentence for each event that the return waits for. Empty for a return that is finished.
pub(super) fn reasons(rma: &Return) -> Vec<(&'static str, String)> {
    if !matches!(rma.status.as_str(), "CREATED" | "PARTIAL_REFUND") {
        return Vec::new();
    }
    let open: Vec<&Unit> = rma.active_units().filter(|unit| unit.refunded_by.is_none()).collect();
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

fn exchange(unit: &Unit) -> Option<&'static str> {
    match unit.exchange_status.as_deref() {
        Some("undeliverable") => Some(UNDELIVERABLE),
        Some("pending") => Some(EXCHANGE),
        _ => None,
    }
}

fn parcel(rma: &Return, unit: &Unit) -> Option<&'static str> {
    let is_unreceived = rma.managed_receiving && unit.receiving_status == "PENDING";
    match unit.package_tracking_status.as_deref() {
        _ if rma.return_method == "customer-keep" => Some(KEPT),
        _ if unit.receiving_status == "RECEIVED" => Some(REFUND),
        Some("PRE_TRANSIT" | "NOT_DROPPED_OFF") => Some(HAND_OVER),
        Some("ACCEPTED" | "TRANSIT") => Some(ON_ITS_WAY),
        Some("FAILURE") => Some(PROBLEM),
        Some("RETURNED") => Some(SENT_BACK),
        Some("DELIVERED") if is_unreceived => Some(RECEIPT),
        Some("DELIVERED") => Some(REFUND),
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

    use super::super::sample;
    use super::*;

    fn unit(fields: &serde_json::Value) -> serde_json::Value {
        let mut unit =
            json!({ "order_identifier": "A", "order_line_item_identifier": "1", "unit": 1 });
        unit.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        unit
    }

    #[test]
    fn a_finished_return_waits_for_nothing() {
        assert!(reasons(&sample("REFUNDED", json!([unit(&json!({}))]))).is_empty());
        assert!(reasons(&sample("CANCELED", json!([unit(&json!({}))]))).is_empty());
    }

    #[test]
    fn a_return_waits_for_the_next_event_of_each_unit() {
        let one = |fields| {
            let mut reasons = reasons(&sample("CREATED", json!([unit(&fields)])));
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
        let reasons = reasons(&sample("CREATED", json!([unit(&moving), unit(&stuck)])));
        let (tone, text) = &reasons[0];
        assert_eq!(*tone, "bad");
        assert!(text.starts_with("For 1 of 2 units: it could not be exchanged"), "{text}");
        assert_eq!(reasons[1], ("", "Each of the 2 units is on its way.".to_owned()));
    }
}
