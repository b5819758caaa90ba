//! The three messages about drop shipments.

use super::super::sample::{cancellation, confirmation, partial_cancellation};
use super::super::{DropShipment, DropShipmentKind, MAX_MESSAGE_BYTES};
use super::*;

fn confirmed() -> Reader {
    let read =
        |document: &Document| DropShipment::read(DropShipmentKind::Confirmation, document).err();
    Reader { sample: confirmation("SO-1"), read }
}

fn cancelled() -> Reader {
    let read =
        |document: &Document| DropShipment::read(DropShipmentKind::Cancellation, document).err();
    Reader { sample: cancellation("SO-1"), read }
}

fn partly_cancelled() -> Reader {
    let read = |document: &Document| {
        DropShipment::read(DropShipmentKind::PartialCancellation, document).err()
    };
    Reader { sample: partial_cancellation("SO-1"), read }
}

#[test]
fn a_confirmation_keeps_its_rules() {
    let reader = confirmed();
    reader.requires(&[
        "/shipment",
        "/shipment/id",
        "/shipment/client_identifier",
        "/shipment/shipment_items",
        "/shipment/shipment_items/0/id",
        "/shipment/shipment_items/0/quantity",
    ]);
    reader.allows_to_leave_out(&[
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
    reader.takes_numbers_and_strings(&["/shipment/id", "/shipment/client_identifier"]);
    reader.bounds_times(&["/shipment/created_at", "/shipment/shipment_items/0/updated_at"]);
    reader.refuses("/shipment/billed_weight", Some(json!(-1)), Code::Invalid);
    reader.refuses("/shipment/shipping_cost_cents", Some(json!(1.5)), Code::InvalidType);
    reader.refuses("/shipment/shipment_items/0/quantity", Some(json!(0)), Code::Invalid);
    reader.refuses("/shipment/shipment_items", Some(json!([])), Code::Invalid);
}

#[test]
fn a_cancellation_keeps_its_rules() {
    let reader = cancelled();
    reader.requires(&[
        "/order",
        "/order/id",
        "/order/client_identifier",
        "/order/status",
        "/order/order_items",
        "/order/order_items/0/id",
        "/order/order_items/0/quantity",
    ]);
    reader.knows_words("/order/status", &["cancelled"]);
    reader
        .bounds_texts(0, &["/order/brand", "/order/reject_reason", "/order/billing_address/city"]);
    reader.bounds_times(&["/order/created_at", "/order/shipping_address/updated_at"]);
    let amounts = ["price", "tax", "processing_fee", "shipping_cost", "shipping_tax"];
    for amount in amounts.map(|amount| format!("/order/{amount}_cents")) {
        reader.allows_to_leave_out(&[&amount]);
        reader.refuses(&amount, Some(json!(-1)), Code::Invalid);
        reader.refuses(&amount, Some(json!("1")), Code::InvalidType);
    }
    reader.refuses("/order/expected_delivery_date", Some(json!("2026-02-30")), Code::Invalid);
    reader.refuses("/order/signature_required", Some(json!("no")), Code::InvalidType);
    reader.refuses("/order/billing_address", Some(json!("here")), Code::InvalidType);
    reader.refuses("/order/order_items/0/price_cents", Some(json!(-1)), Code::Invalid);
}

#[test]
fn a_partial_cancellation_keeps_its_rules() {
    let reader = partly_cancelled();
    reader.requires(&[
        "/order",
        "/order/id",
        "/order/client_identifier",
        "/order/order_items",
        "/order/order_items/0/id",
        "/order/order_items/0/quantity",
        "/order/order_items/0/cancelled_quantity",
    ]);
    reader.allows_to_leave_out(&["/order/status", "/order/order_items/0/status"]);
    let pointer = "/order/order_items/0/cancelled_quantity";
    reader.accepts(&[(pointer, Some(json!(2)))]);
    reader.refuses(pointer, Some(json!(3)), Code::Invalid);
    reader.refuses(pointer, Some(json!(-1)), Code::Invalid);
}

#[test]
fn a_message_that_is_too_long_is_refused() {
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
    let refused = with_items(110).unwrap_err();
    assert_eq!((&*refused.errors[0].field, refused.errors[0].code), ("$", Code::Invalid));
}

#[test]
fn a_message_goes_out_as_it_came() {
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
