//! Generated warehouse documents for tests, benches and demos.

use serde_json::{Value, json};

/// A freight shipment of one carton.
pub fn outbound_shipment(number: &str, units: usize) -> Value {
    let details: Vec<_> = (1..=units).map(outbound_detail).collect();
    json!({
        "shipment_type": "freight",
        "from": { "identifier": "WH-EAST", "type": "warehouse" },
        "to": {
            "identifier": "WH-WEST", "type": "warehouse",
            "address": {
                "name": "Receiving", "company": "Acme Outdoor", "street": "12 Dock Road",
                "street2": "Gate 4", "city": "Reno", "state": "NV", "zip": "89501",
            },
        },
        "asn_number": number, "channel": "Outlet", "shipment_identifier": "SO-1001",
        "tracking_number": "PRO-778", "carrier": "Saia", "carrier_payment_type": "prepaid",
        "ship_date": "2026-03-02T16:00:00Z", "status": "pending", "details_type": "unit",
        "bol_number": "BOL-9", "timestamp": "2026-03-01T08:00:00Z",
        "cartons": [{
            "identifier": "PALLET-1", "sorting_template_name": "Outlet A",
            "reference": {
                "type": "RA", "identifier": "RA-5", "alternate_identifier": "ALT-5",
            },
            "details": details,
        }],
    })
}

fn outbound_detail(unit: usize) -> Value {
    json!({
        "line_identifier": format!("L-{unit}"), "program_identifier": "outlet-east",
        "unit_identifier": format!("LP-{unit:08}"), "client_unit_identifier": format!("C-{unit}"),
        "inbound_received_asn": "IN-77", "sku": format!("TENT-{:03}", unit % 200),
        "upc": "036000291452", "quantity": 1, "vendor_identifier": "V-12",
        "serial_number": format!("SN-{unit}"), "condition": "A",
        "eligibility_flags": ["resale", "outlet"], "merchant": "Acme Outdoor",
    })
}

/// An inbound ASN for an RMA, with one line per unit.
pub fn inbound_asn(number: &str, units: usize) -> Value {
    let details: Vec<_> = (1..=units)
        .map(|unit| {
            json!({
                "line_identifier": format!("L-{unit}"), "reference_line_identifier": unit,
                "unit_identifier": format!("U-{unit}"), "sku": format!("TENT-{:03}", unit % 200),
                "upc": "036000291452", "quantity": 1, "return_reason": "Too small",
            })
        })
        .collect();
    json!({
        "asn_number": number, "program_identifier": 7, "shipment_identifier": "RMA-100",
        "from": { "identifier": "shopper-1", "type": "customer" },
        "to": { "identifier": 12, "type": "warehouse" },
        "tracking_number": "1Z999", "merchant": "Acme Outdoor", "concept": "Acme Kids",
        "cartons": [{
            "identifier": "BOX-1",
            "reference": { "type": "RMA", "identifier": "RMA-100", "alternate_identifier": 100 },
            "details": details,
        }],
    })
}

/// The receipt of a unit of [`inbound_asn`].
pub fn receipt(asn_number: &str, unit: usize) -> Value {
    json!({
        "asn_number": asn_number, "line_identifier": format!("L-{unit}"),
        "to": { "identifier": 12, "type": "warehouse" },
        "initial_condition": "A", "initial_channel": "Outlet", "user_login": "mwagner",
        "location_identifier": "A-01-02", "client_unit_identifier": unit, "asin": "B00EXAMPLE",
        "serial_number": format!("SN-{unit}"),
    })
}

/// A number that the warehouse assigns to an order.
fn id_of(order: &str) -> i64 {
    order.bytes().fold(7, |id, byte| (id * 131 + i64::from(byte)) % 1_000_000_007)
}

pub fn confirmation(order: &str) -> Value {
    json!({ "shipment": {
        "id": id_of(order), "client_identifier": order, "channel": "Dropship", "carrier": "UPS",
        "shipping_method": "Ground", "tracking_number": "1Z1", "billed_weight": 2.5,
        "shipping_cost_cents": 899, "packing_slip_identifier": "PS-1",
        "shipment_items": [{
            "id": 9001, "client_identifier": "LINE-1", "quantity": 2,
            "created_at": "2026-03-01T08:00:00Z", "updated_at": "2026-03-01T09:00:00Z",
        }],
        "created_at": "2026-03-01T08:00:00Z", "updated_at": "2026-03-01T09:00:00Z",
    } })
}

pub fn cancellation(order: &str) -> Value {
    let address = json!({
        "id": 3, "name": "Ada Adler", "company": "Acme", "telephone_number": "555 0100",
        "street": "1 Elm Street", "street2": "Flat 2", "city": "Albany", "state": "NY",
        "zip_code": "12207", "country": "US",
        "created_at": "2026-03-01T08:00:00Z", "updated_at": "2026-03-01T08:00:00Z",
    });
    json!({ "order": {
        "id": id_of(order), "client_identifier": order, "billing_address": address,
        "shipping_address": address, "brand": "Acme Kids", "shipping_method": "Ground",
        "status": "cancelled", "price_cents": 4000, "tax_cents": 320,
        "processing_fee_cents": 100, "shipping_cost_cents": 899, "shipping_tax_cents": 72,
        "comments": "Bin was empty", "expected_delivery_date": "2026-03-08",
        "signature_required": false, "packing_slip_identifier": "PS-1",
        "reject_reason": "inventory not found",
        "order_items": [{
            "id": 9001, "client_identifier": "LINE-1", "sku": "TENT-001", "brand": "Acme Kids",
            "condition": "N", "quantity": 2, "price_cents": 2000, "tax_cents": 160,
            "shipping_cost_cents": 450, "shipping_tax_cents": 36, "status": "cancelled",
            "comments": "not found",
        }],
        "created_at": "2026-03-01T08:00:00Z", "updated_at": "2026-03-01T09:00:00Z",
    } })
}

pub fn partial_cancellation(order: &str) -> Value {
    json!({ "order": {
        "id": id_of(order), "client_identifier": order, "status": "shipped",
        "order_items": [{
            "id": 9001, "client_identifier": "LINE-1", "status": "cancelled", "quantity": 2,
            "cancelled_quantity": 1,
        }],
    } })
}
