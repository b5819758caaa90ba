//! The three messages about drop shipments.

use super::super::sample::{cancellation, confirmation, partial_cancellation};
use super::super::{DropShipment, DropShipmentKind, MAX_MESSAGE_BYTES};
use super::*;

fn confirmation_reader() -> Reader {
    let read =
        |document: &Document| DropShipment::read(DropShipmentKind::Confirmation, document).err();
    Reader { sample: confirmation("SO-1"), read }
}

fn cancellation_reader() -> Reader {
    let read =
        |document: &Document| DropShipment::read(DropShipmentKind::Cancellation, document).err();
    Reader { sample: cancellation("SO-1"), read }
}

fn partial_cancellation_reader() -> Reader {
    let read = |document: &Document| {
        DropShipment::read(DropShipmentKind::PartialCancellation, document).err()
    };
    Reader { sample: partial_cancellation("SO-1"), read }
}

#[test]
fn a_confirmation_is_validated() {
    let reader = confirmation_reader();
    reader.requires(&[
        "/shipment",
        "/shipment/id",
        "/shipment/client_identifier",
        "/shipment/shipment_items",
        "/shipment/shipment_items/0/id",
        "/shipment/shipment_items/0/quantity",
    ]);
    reader.allows_absent(&[
        "/shipment/channel",
        "/shipment/carrier",
        "/shipment/shipping_method",
        "/shipment/tracking_number",
        "/shipment/billed_weight",
        "/shipment/shipping_cost_cents",
        "/shipment/packing_slip_identifier",
        "/shipment/created_at",
        "/shipment/updated_at",
        "/shipment/shipment_items/0/client_identifier",
        "/shipment/shipment_items/0/created_at",
        "/shipment/shipment_items/0/updated_at",
    ]);
    reader.accepts_numbers_and_strings(&["/shipment/id", "/shipment/client_identifier"]);
    reader.requires_times(&["/shipment/created_at", "/shipment/shipment_items/0/updated_at"]);
    reader.rejects("/shipment/billed_weight", Some(json!(-1)), Code::Invalid);
    reader.rejects("/shipment/shipping_cost_cents", Some(json!(1.5)), Code::InvalidType);
    reader.rejects("/shipment/shipment_items/0/quantity", Some(json!(0)), Code::Invalid);
    reader.rejects("/shipment/shipment_items", Some(json!([])), Code::Invalid);
}

#[test]
fn a_cancellation_is_validated() {
    let reader = cancellation_reader();
    reader.requires(&[
        "/order",
        "/order/id",
        "/order/client_identifier",
        "/order/status",
        "/order/order_items",
        "/order/order_items/0/id",
        "/order/order_items/0/quantity",
    ]);
    reader.accepts_only("/order/status", &["cancelled", "rejected"]);
    reader
        .limits_texts(0, &["/order/brand", "/order/reject_reason", "/order/billing_address/city"]);
    reader.requires_times(&["/order/created_at", "/order/shipping_address/updated_at"]);
    let amounts = ["price", "tax", "processing_fee", "shipping_cost", "shipping_tax"];
    for amount in amounts.map(|amount| format!("/order/{amount}_cents")) {
        reader.allows_absent(&[&amount]);
        reader.rejects(&amount, Some(json!(-1)), Code::Invalid);
        reader.rejects(&amount, Some(json!("1")), Code::InvalidType);
    }
    reader.rejects("/order/expected_delivery_date", Some(json!("2026-02-30")), Code::Invalid);
    reader.rejects("/order/signature_required", Some(json!("no")), Code::InvalidType);
    reader.rejects("/order/billing_address", Some(json!("here")), Code::InvalidType);
    reader.rejects("/order/order_items/0/price_cents", Some(json!(-1)), Code::Invalid);
}

#[test]
fn a_partial_cancellation_is_validated() {
    let reader = partial_cancellation_reader();
    reader.requires(&[
        "/order",
        "/order/id",
        "/order/client_identifier",
        "/order/order_items",
        "/order/order_items/0/id",
        "/order/order_items/0/quantity",
        "/order/order_items/0/cancelled_quantity",
    ]);
    reader.allows_absent(&["/order/status", "/order/order_items/0/status"]);
    let pointer = "/order/order_items/0/cancelled_quantity";
    reader.accepts(&[(pointer, Some(json!(2)))]);
    reader.rejects(pointer, Some(json!(3)), Code::Invalid);
    reader.rejects(pointer, Some(json!(-1)), Code::Invalid);
}

#[test]
fn a_too_long_message_is_rejected() {
    let mut sample = cancellation("SO-1");
    let item = sample["order"]["order_items"][0].clone();
    let mut with_items = |items: usize| {
        sample["order"]["order_items"] = (0..items)
            .map(|number| {
                let mut item = item.clone();
                item["id"] = json!(number);
                item["comments"] = json!("x".repeat(5000));
                item
            })
            .collect();
        DropShipment::read(DropShipmentKind::Cancellation, &document(&sample))
    };
    assert!(with_items(90).unwrap().body.len() <= MAX_MESSAGE_BYTES);
    let invalid = with_items(110).unwrap_err();
    assert_eq!((&*invalid.errors[0].field, invalid.errors[0].code), ("$", Code::Invalid));
}

#[test]
fn a_weight_keeps_its_digits() {
    for weight in ["10", "10.50", "0.10", "1e1", "123456789012.125"] {
        let report = confirmation("SO-1").to_string().replace("2.5", weight);
        let report = Document::parse(report.as_bytes()).unwrap();
        let message = DropShipment::read(DropShipmentKind::Confirmation, &report).unwrap();
        let sent = format!("\"billed_weight\":{weight},");
        assert!(message.body.contains(&sent), "{}", message.body);
    }
}

#[test]
fn a_message_is_sent_as_it_was_received() {
    let samples = [
        (DropShipmentKind::Confirmation, confirmation("SO-1")),
        (DropShipmentKind::Cancellation, cancellation("SO-1")),
        (DropShipmentKind::PartialCancellation, partial_cancellation("SO-1")),
    ];
    for (kind, sample) in samples {
        let read = DropShipment::read(kind, &document(&sample)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&read.body).unwrap(), sample);
        assert_eq!(read.order, "SO-1");
    }
}
