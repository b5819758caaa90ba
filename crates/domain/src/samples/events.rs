//! The events that merchants receive, each with the body of a realistic sample message.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::messages::sample;
use crate::labels::{LABEL_CANCELED, LABEL_REQUESTED};
use crate::message_kind::MessageKind::{
    self, DropShipmentCancellation, DropShipmentConfirmation, DropShipmentPartialCancellation,
    ExchangeOrder, InventoryReceipt, LabelRequest, OutboundAsn, Rma,
};
use crate::message_kind::MessageVersion;
use crate::returns::GUARANTEES_SINCE;

/// An event that the header `X-Service-Event` of a message can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleEvent {
    pub name: &'static str,
    pub kind: MessageKind,
    pub about: &'static str,
    /// The difference from the sample of the kind, in JSON.
    difference: &'static str,
    /// The first version with further fields, and the difference that they make.
    newer: Option<(MessageVersion, &'static str)>,
}

const fn event(
    kind: MessageKind,
    name: &'static str,
    about: &'static str,
    difference: &'static str,
) -> SampleEvent {
    SampleEvent { name, kind, about, difference, newer: None }
}

impl SampleEvent {
    /// The event of an exchanged unit, whose message has the guarantee of the unit from a version on.
    const fn with_guarantee(self, difference: &'static str) -> Self {
        Self { newer: Some((GUARANTEES_SINCE, difference)), ..self }
    }
}

/// Every event, by message kind.
pub const EVENTS: &[SampleEvent] = &[
    event(Rma, "rma.created", "a return was created", "{}"),
    event(
        Rma,
        "rma.tracking_updated",
        "the return has a label, or its parcel a new tracking status",
        r#"{"items":{"tracking_number":"SAMPLE-TRACKING","package_tracking_status":"PRE_TRANSIT"}}"#,
    ),
    event(
        Rma,
        "rma.dropped_off",
        "the parcel was dropped off or picked up",
        r#"{"items":{"tracking_number":"SAMPLE-TRACKING","package_tracking_status":"ACCEPTED"}}"#,
    ),
    event(
        Rma,
        "rma.in_transit",
        "the carrier has scanned the parcel",
        r#"{"items":{"tracking_number":"SAMPLE-TRACKING","package_tracking_status":"TRANSIT"}}"#,
    ),
    event(
        Rma,
        "rma.received",
        "the warehouse has checked units, with managed receiving",
        r#"{"items":{"tracking_number":"SAMPLE-TRACKING","package_tracking_status":"DELIVERED","receiving_status":"RECEIVED"}}"#,
    ),
    event(
        Rma,
        "rma.partially_refunded",
        "a refund was recorded, and some units are not refunded yet",
        r#"{"items":{"tracking_number":"SAMPLE-TRACKING","package_tracking_status":"DELIVERED"}}"#,
    ),
    event(
        Rma,
        "rma.refunded",
        "a refund was recorded, and all units are refunded",
        r#"{"status":"REFUNDED","items":{"tracking_number":"SAMPLE-TRACKING","package_tracking_status":"DELIVERED"}}"#,
    ),
    event(Rma, "rma.canceled", "some or all units were canceled", r#"{"status":"CANCELED"}"#),
    event(
        Rma,
        "rma.expired",
        "some or all units were canceled, because no carrier had scanned a parcel in time",
        r#"{"status":"CANCELED"}"#,
    ),
    event(
        Rma,
        "rma.exchange_placed",
        "the exchange order of units exists",
        r#"{"items":{"is_exchange":true,"exchange_order_identifier":"SAMPLE-EXCHANGE","refund_type":"EVEN_EXCHANGE","refund_financials":{"service_refund_amount_cents":5395,"shopper_refund_amount_cents":0}}}"#,
    )
    .with_guarantee(r#"{"items":{"guarantee":"open","guarantee_amount_cents":5395}}"#),
    event(
        Rma,
        "rma.exchange_failed",
        "units are refunded instead of exchanged",
        r#"{"items":{"is_exchange":false,"refund_type":"REFUND"}}"#,
    ),
    event(
        Rma,
        "rma.exchange_unreturned",
        "exchanged units did not come back in time, and you can charge for them",
        r#"{"items":{"is_exchange":true,"exchange_order_identifier":"SAMPLE-EXCHANGE","refund_type":"EVEN_EXCHANGE","refund_financials":{"service_refund_amount_cents":5395,"shopper_refund_amount_cents":0}}}"#,
    )
    .with_guarantee(r#"{"items":{"guarantee":"due","guarantee_amount_cents":5395}}"#),
    event(
        Rma,
        "rma.guarantee_waived",
        "you or an operator waived exchanged units that have not come back",
        r#"{"items":{"is_exchange":true,"exchange_order_identifier":"SAMPLE-EXCHANGE","refund_type":"EVEN_EXCHANGE","refund_financials":{"service_refund_amount_cents":5395,"shopper_refund_amount_cents":0}}}"#,
    )
    .with_guarantee(r#"{"items":{"guarantee":"waived","guarantee_amount_cents":5395}}"#),
    event(ExchangeOrder, "exchange_order.created", "place this exchange order", "{}"),
    event(LabelRequest, LABEL_REQUESTED, "make a label for this parcel", "{}"),
    event(
        LabelRequest,
        LABEL_CANCELED,
        "cancel the label of this parcel, which is not used",
        r#"{"parcel_count":null,"return_method":null,"form":null,"currency":null,"from":null,"to":null,"units":null,"requested_at":null,"tracking_number":"SAMPLE-TRACKING","reason":"return_canceled","canceled_at":"2026-01-01T00:00:00Z"}"#,
    ),
    event(OutboundAsn, "outbound_asn.pending", "a shipment to you is planned", "{}"),
    event(
        OutboundAsn,
        "outbound_asn.shipped",
        "a shipment to you has left",
        r#"{"status":"shipped","timestamp":"2026-01-01T00:00:00Z"}"#,
    ),
    event(
        OutboundAsn,
        "outbound_asn.delivered",
        "a shipment to you has arrived",
        r#"{"status":"delivered","timestamp":"2026-01-01T00:00:00Z"}"#,
    ),
    event(
        OutboundAsn,
        "outbound_asn.canceled",
        "a shipment to you was canceled",
        r#"{"status":"canceled","timestamp":"2026-01-01T00:00:00Z"}"#,
    ),
    event(InventoryReceipt, "inventory_receipt.received", "the warehouse received a unit", "{}"),
    event(
        InventoryReceipt,
        "inventory_receipt.rejected",
        "the warehouse rejected a unit",
        r#"{"reject_reason":"Damaged","initial_condition":null}"#,
    ),
    event(
        DropShipmentConfirmation,
        "drop_shipment.confirmed",
        "the warehouse has shipped an order for you",
        "{}",
    ),
    event(
        DropShipmentCancellation,
        "drop_shipment.cancelled",
        "the warehouse cannot ship an order for you",
        "{}",
    ),
    event(
        DropShipmentPartialCancellation,
        "drop_shipment.partially_cancelled",
        "the warehouse cannot ship a part of an order for you",
        "{}",
    ),
];

impl SampleEvent {
    /// Returns the event with this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        EVENTS.iter().find(|event| event.name == name)
    }

    /// Returns the body of a sample message of a version that is sent at `now`.
    pub fn body(&self, version: MessageVersion, now: DateTime<Utc>) -> serde_json::Result<String> {
        let mut body = serde_json::from_str(sample(self.kind))?;
        apply(&mut body, &serde_json::from_str(self.difference)?);
        if let Some((_, newer)) = self.newer.filter(|(since, _)| version >= *since) {
            apply(&mut body, &serde_json::from_str(newer)?);
        }
        let now = now.to_rfc3339_opts(SecondsFormat::Secs, true);
        let times =
            ["created_at", "updated_at", "requested_at", "canceled_at", "ship_date", "timestamp"];
        for time in times {
            if let Some(time) = body.get_mut(time) {
                *time = json!(now);
            }
        }
        Ok(body.to_string())
    }
}

/// Applies a difference. The difference of an array applies to each of its elements, and null removes a
/// field.
fn apply(value: &mut Value, difference: &Value) {
    match (value, difference) {
        (Value::Array(elements), Value::Object(_)) => {
            elements.iter_mut().for_each(|element| apply(element, difference));
        }
        (Value::Object(members), Value::Object(changed)) => {
            for (key, difference) in changed {
                if difference.is_null() {
                    members.remove(key);
                } else {
                    apply(members.entry(key.clone()).or_insert(Value::Null), difference);
                }
            }
        }
        (value, difference) => *value = difference.clone(),
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;
    use crate::labels::LabelMessage;
    use crate::returns::{Amounts, RefundFinancials, ServiceEvent};

    #[test]
    fn the_sample_of_every_event_conforms_to_its_published_schema() {
        let now = "2026-11-16T09:30:00Z".parse().unwrap();
        for event in EVENTS {
            let messages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto-schemas/messages");
            let path = format!("{messages}/{}.schema.json", event.kind);
            let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let validator =
                jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            for version in event.kind.versions() {
                let body = event.body(*version, now).unwrap();
                let body: Value = serde_json::from_str(&body).unwrap();
                let errors: Vec<_> =
                    validator.iter_errors(&body).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{} in version {version}: {errors:#?}", event.name);
            }
        }
    }

    #[test]
    fn a_sample_reports_its_event() {
        let now = "2026-11-16T09:30:00Z".parse().unwrap();
        let in_version = |name, version| -> Value {
            let body = SampleEvent::find(name).unwrap().body(MessageVersion(version), now);
            serde_json::from_str(&body.unwrap()).unwrap()
        };
        let body = |name| in_version(name, 1);
        let moving = body("rma.in_transit");
        assert_eq!(moving["items"][0]["package_tracking_status"], "TRANSIT");
        assert_eq!(moving["updated_at"], "2026-11-16T09:30:00Z");
        assert_eq!(body("rma.refunded")["status"], "REFUNDED");
        assert_eq!(body("outbound_asn.shipped")["status"], "shipped");
        assert_eq!(SampleEvent::find("rma.lost"), None);
        let guarantee = |version| {
            in_version("rma.exchange_unreturned", version)["items"][0]["guarantee"].take()
        };
        assert_eq!((guarantee(3), guarantee(4)), (json!(null), json!("due")));
    }

    #[test]
    fn a_sample_has_the_fields_of_its_state() {
        let now = "2026-11-16T09:30:00Z".parse().unwrap();
        for event in EVENTS {
            let version = event.kind.versions()[0];
            let body: Value = serde_json::from_str(&event.body(version, now).unwrap()).unwrap();
            match event.kind {
                Rma => {
                    let item = &body["items"][0];
                    let refund_type = serde_json::from_value(item["refund_type"].clone()).unwrap();
                    let amounts = Amounts {
                        product_amount_cents: 4995,
                        discount_amount_cents: 0,
                        tax_amount_cents: 400,
                    };
                    let expected = json!(RefundFinancials::new(amounts, refund_type));
                    assert_eq!(item["refund_financials"], expected, "{}", event.name);
                }
                ExchangeOrder => assert_eq!(body["items"][0]["unit_price_amount_cents"], 4995),
                LabelRequest => {
                    let message: LabelMessage = serde_json::from_value(body).unwrap();
                    let is_canceled = matches!(message, LabelMessage::Canceled(_));
                    assert_eq!(is_canceled, event.name == LABEL_CANCELED, "{}", event.name);
                }
                OutboundAsn => {
                    assert_eq!(body["carrier"], "UPS", "{}", event.name);
                    assert_eq!(body["tracking_number"], "SAMPLE-TRACKING", "{}", event.name);
                }
                InventoryReceipt => {
                    let is_rejected = body.get("reject_reason").is_some();
                    let has_condition = body.get("initial_condition").is_some();
                    assert_eq!(has_condition, !is_rejected, "{}", event.name);
                }
                DropShipmentConfirmation => assert_eq!(body["shipment"]["carrier"], "UPS"),
                DropShipmentCancellation | DropShipmentPartialCancellation => {}
            }
        }
    }

    #[test]
    fn every_event_of_a_return_has_a_sample() {
        for event in ServiceEvent::VARIANTS {
            assert!(SampleEvent::find(event.as_str()).is_some(), "{event}");
        }
    }
}
