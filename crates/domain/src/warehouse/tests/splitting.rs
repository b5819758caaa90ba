//! A large shipment becomes several messages within the limits, which contain each unit once.

use std::collections::HashSet;

use proptest::prelude::*;

use super::super::sample::outbound_shipment;
use super::super::{
    AsnPart, MAX_MESSAGE_BYTES, MAX_MESSAGE_LINES, OutboundAsn, OutboundHeader, OutboundShipment,
    Warehouses,
};
use super::*;

fn read(value: &Value) -> OutboundShipment {
    OutboundShipment::read(&document(value), &Warehouses::new()).unwrap()
}

/// The messages of all parts, after checks of their limits and units.
#[track_caller]
fn messages(shipment: &OutboundShipment, parts: &[AsnPart]) -> Vec<OutboundAsn> {
    let messages: Vec<OutboundAsn> = parts
        .iter()
        .map(|part| {
            let body = shipment.header.body(&part.asn_number, &part.cartons).unwrap();
            assert!(
                body.len() <= MAX_MESSAGE_BYTES && part.units <= MAX_MESSAGE_LINES,
                "{}",
                body.len()
            );
            serde_json::from_str(&body).unwrap()
        })
        .collect();
    for (message, part) in messages.iter().zip(parts) {
        assert_eq!(message.header.asn_number, part.asn_number);
        let units: usize = message.cartons.iter().map(|carton| carton.details.len()).sum();
        assert_eq!(units, part.units);
        assert!(message.cartons.iter().all(|carton| !carton.details.is_empty()));
    }
    let reported = messages.iter().flat_map(|it| &it.cartons).flat_map(|carton| &carton.details);
    let reported: Vec<_> = reported.map(|detail| &detail.line_identifier).collect();
    let shipped = shipment.cartons.iter().flat_map(|carton| &carton.details);
    let shipped: Vec<_> = shipped.map(|detail| &detail.line_identifier).collect();
    assert_eq!(reported, shipped);
    messages
}

#[test]
fn a_small_shipment_keeps_its_number() {
    for units in [1, 999, 1000] {
        let shipment = read(&outbound_shipment("ASN-1", units));
        let parts = shipment.split().unwrap();
        let messages = messages(&shipment, &parts);
        assert_eq!((parts.len(), parts[0].asn_number.as_str()), (1, "ASN-1"));
        let whole = OutboundAsn { header: shipment.header, cartons: shipment.cartons };
        assert_eq!(messages, [whole]);
    }
}

#[test]
fn a_carton_of_2500_units_spans_three_messages() {
    let shipment = read(&outbound_shipment("ASN-1", 2500));
    let parts = shipment.split().unwrap();
    let numbers: Vec<_> = parts.iter().map(|part| (part.asn_number.as_str(), part.units)).collect();
    assert_eq!(numbers, [("ASN-1_1", 1000), ("ASN-1_2", 1000), ("ASN-1_3", 500)]);
    for message in messages(&shipment, &parts) {
        let header = OutboundHeader { asn_number: "ASN-1".into(), ..message.header };
        assert_eq!(header, shipment.header);
        let [carton] = message.cartons.as_slice() else { panic!("one carton a message") };
        assert_eq!(carton.identifier, shipment.cartons[0].identifier);
        assert_eq!(carton.reference, shipment.cartons[0].reference);
    }
}

#[test]
fn a_message_has_limited_bytes() {
    let mut value = outbound_shipment("ASN-1", 900);
    for detail in value["cartons"][0]["details"].as_array_mut().unwrap() {
        detail["serial_number"] = json!("\u{1}".repeat(255));
    }
    let shipment = read(&value);
    let parts = shipment.split().unwrap();
    assert!(parts.len() > 2, "{}", parts.len());
    messages(&shipment, &parts);
}

#[test]
fn the_number_of_a_split_shipment_leaves_space_for_the_suffix() {
    let long = "x".repeat(254);
    assert_eq!(read(&outbound_shipment(&long, 1000)).split().unwrap().len(), 1);
    let invalid = read(&outbound_shipment(&long, 1001)).split().unwrap_err();
    assert_eq!(invalid.errors[0].field, "$.asn_number");
    assert!(read(&outbound_shipment(&long[1..], 1001)).split().is_ok());
}

#[test]
fn a_header_that_fills_a_message_is_rejected() {
    let mut value = outbound_shipment("ASN-1", 3);
    for (length, fits) in [
        (MAX_MESSAGE_BYTES - 4096, true),
        (MAX_MESSAGE_BYTES - 1200, false),
        (MAX_MESSAGE_BYTES, false),
    ] {
        value["tracking_number"] = json!("1".repeat(length));
        let shipment = read(&value);
        match shipment.split() {
            Ok(parts) => {
                messages(&shipment, &parts);
                assert!(fits, "{length}");
            }
            Err(invalid) => {
                assert!(!fits, "{length}");
                assert_eq!(invalid.errors[0].field, "$.tracking_number");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_unit_is_in_one_message(
        sizes in proptest::collection::vec((1usize..1500, 0usize..200), 1..6),
    ) {
        let mut value = outbound_shipment("ASN-1", 1);
        let mut number = 0;
        let cartons: Vec<_> = sizes.iter().map(|(units, padding)| {
            let details: Vec<_> = (0..*units).map(|_| {
                number += 1;
                json!({
                    "line_identifier": number.to_string(), "program_identifier": "p",
                    "unit_identifier": "\"".repeat(*padding) + "u", "sku": "s", "quantity": 1,
                    "condition": "N",
                })
            }).collect();
            json!({ "details": details })
        }).collect();
        value["cartons"] = json!(cartons);
        let shipment = read(&value);
        let parts = shipment.split().unwrap();
        messages(&shipment, &parts);
        let numbers: HashSet<_> = parts.iter().map(|part| &part.asn_number).collect();
        prop_assert_eq!(numbers.len(), parts.len());
    }
}
