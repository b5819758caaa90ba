//! Every rule of the outbound ASN's tables, and the path of its status.

use super::super::sample::outbound_shipment;
use super::super::{
    AsnStatus, InboundAsn, InboundFacts, OutboundShipment, ShipmentChange, Warehouse, Warehouses,
    message_schema,
};
use super::*;
use crate::json::object;
use crate::message_kind::MessageKind;
use crate::schema::json_schema;

const REQUIRED: [&str; 24] = [
    "/shipment_type",
    "/from",
    "/from/identifier",
    "/from/type",
    "/to",
    "/to/identifier",
    "/to/type",
    "/to/address",
    "/to/address/name",
    "/to/address/street",
    "/to/address/city",
    "/to/address/state",
    "/to/address/zip",
    "/asn_number",
    "/channel",
    "/shipment_identifier",
    "/ship_date",
    "/status",
    "/details_type",
    "/cartons",
    "/cartons/0/details",
    "/cartons/0/reference/type",
    "/cartons/0/reference/identifier",
    "/cartons/0/details/0/line_identifier",
];
const REQUIRED_OF_UNITS: [&str; 5] = [
    "/cartons/0/details/0/program_identifier",
    "/cartons/0/details/0/unit_identifier",
    "/cartons/0/details/0/sku",
    "/cartons/0/details/0/quantity",
    "/cartons/0/details/0/condition",
];
const OPTIONAL: [&str; 19] = [
    "/tracking_number",
    "/carrier",
    "/carrier_payment_type",
    "/bol_number",
    "/timestamp",
    "/to/address/company",
    "/to/address/street2",
    "/cartons/0/identifier",
    "/cartons/0/reference",
    "/cartons/0/reference/alternate_identifier",
    "/cartons/0/sorting_template_name",
    "/cartons/0/details/0/client_unit_identifier",
    "/cartons/0/details/0/inbound_received_asn",
    "/cartons/0/details/0/upc",
    "/cartons/0/details/0/vendor_identifier",
    "/cartons/0/details/0/serial_number",
    "/cartons/0/details/0/eligibility_flags",
    "/cartons/0/details/0/merchant",
    "/cartons/0/details/1/merchant",
];

fn reader() -> Reader {
    let read = |document: &Document| OutboundShipment::read(document, &Warehouses::new()).err();
    Reader { sample: outbound_shipment("ASN-1", 2), read }
}

fn shipment(changes: &[Change<'_>]) -> OutboundShipment {
    let value = changed(outbound_shipment("ASN-1", 2), changes);
    OutboundShipment::read(&document(&value), &Warehouses::new()).unwrap()
}

#[test]
fn required_fields_are_required() {
    reader().requires(&REQUIRED);
    reader().requires(&REQUIRED_OF_UNITS);
}

#[test]
fn optional_fields_can_be_absent() {
    let objects = ["/cartons/0/reference"];
    let (objects, others): (Vec<_>, Vec<_>) =
        OPTIONAL.into_iter().partition(|pointer| objects.contains(pointer));
    reader().allows_absent(&others);
    reader().accepts(&[(objects[0], None)]);
    reader().rejects(objects[0], Some(json!("RA-5")), Code::InvalidType);
}

#[test]
fn the_published_schemas_require_the_same_fields() {
    let sample = outbound_shipment("ASN-1", 2);
    let is_valid = |schema: &Value, pointer: &str| {
        jsonschema::is_valid(schema, &changed(sample.clone(), &[(pointer, None)]))
    };
    let report = json_schema::<OutboundShipment>("Report");
    // A warehouse can have these fields instead of the report.
    let is_of_record = |pointer: &str| {
        pointer.starts_with("/from/")
            || pointer.starts_with("/to/") && !pointer.contains("address/")
    };
    for pointer in REQUIRED.iter().chain(&REQUIRED_OF_UNITS) {
        assert_eq!(is_valid(&report, pointer), is_of_record(pointer), "{pointer}");
    }
    for pointer in OPTIONAL {
        assert!(is_valid(&report, pointer), "{pointer}");
    }
    let message = message_schema(MessageKind::OutboundAsn).unwrap();
    for pointer in ["/tracking_number", "/carrier", "/carrier_payment_type"] {
        assert!(!is_valid(&message, pointer), "{pointer}");
    }
}

#[test]
fn enumerated_fields_accept_only_their_values() {
    let reader = reader();
    reader.accepts_only("/status", &["pending", "shipped", "delivered", "canceled"]);
    reader.accepts_only("/details_type", &["unit"]);
    reader.accepts_only("/from/type", &["warehouse", "store"]);
    reader.accepts_only("/to/type", &["warehouse", "store"]);
    reader.accepts_only("/carrier_payment_type", &["prepaid", "collect"]);
    let references = ["StockTransferOrder", "RA", "RMA", "ForwardOrder", "ReturnsPortalOrder"];
    reader.accepts_only("/cartons/0/reference/type", &references);
    let conditions = ["N", "A", "R", "B", "TT", "C", "X"];
    reader.accepts_only("/cartons/0/details/1/condition", &conditions);
    reader.rejects("/shipment_type", Some(json!("rocket")), Code::Invalid);
}

#[test]
fn an_asn_number_has_limited_characters_and_length() {
    let reader = reader();
    for good in ["a", "A-Z_9", &"x".repeat(255)] {
        reader.accepts(&[("/asn_number", Some(json!(good)))]);
    }
    for bad in ["", " ", "a b", "a/b", "ä", "a.b", &"x".repeat(256)] {
        reader.rejects("/asn_number", Some(json!(bad)), Code::Invalid);
    }
}

#[test]
fn a_quantity_is_always_one() {
    for quantity in [0, 2, -1] {
        let pointer = "/cartons/0/details/1/quantity";
        reader().rejects(pointer, Some(json!(quantity)), Code::Invalid);
    }
}

#[test]
fn texts_and_times_are_validated() {
    let reader = reader();
    reader.limits_texts(1, &["/channel", "/shipment_identifier", "/from/identifier"]);
    reader.limits_texts(1, &["/cartons/0/details/0/sku", "/cartons/0/details/0/unit_identifier"]);
    reader.limits_texts(0, &["/carrier", "/bol_number", "/cartons/0/details/0/serial_number"]);
    reader.requires_times(&["/ship_date", "/timestamp"]);
    reader.accepts(&[("/tracking_number", Some(json!("1".repeat(10_000))))]);
    reader.rejects("/cartons", Some(json!([])), Code::Invalid);
    reader.rejects("/cartons/0/details", Some(json!([])), Code::Invalid);
}

#[test]
fn line_identifiers_are_unique_in_the_shipment() {
    let value = changed(outbound_shipment("A", 3), &[]);
    let carton = value["cartons"][0].clone();
    let doubled = changed(value, &[("/cartons", Some(json!([carton, carton])))]);
    let invalid = OutboundShipment::read(&document(&doubled), &Warehouses::new()).unwrap_err();
    let fields: Vec<_> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
    let line = |unit| format!("$.cartons[1].details[{unit}].line_identifier");
    assert_eq!(fields, [line(0), line(1), line(2)]);
}

#[test]
fn a_shipment_has_at_most_twenty_thousand_units() {
    let read = |units| {
        OutboundShipment::read(&document(&outbound_shipment("A", units)), &Warehouses::new())
    };
    assert_eq!(read(20_000).unwrap().units(), 20_000);
    assert_eq!(read(20_001).unwrap_err().errors[0].field, "$.cartons[0].details");
}

#[test]
fn a_stock_transfer_has_no_carrier() {
    let transfer = ("/shipment_type", Some(json!("stock_transfer")));
    let fields = ["/tracking_number", "/carrier", "/carrier_payment_type"];
    let expected: Vec<_> = fields.iter().map(|field| (path(field), Code::Invalid)).collect();
    assert_eq!(reader().errors(std::slice::from_ref(&transfer)), expected);
    let mut changes = vec![transfer];
    changes.extend(fields.map(|field| (field, Some(json!(null)))));
    let shipment = shipment(&changes);
    let body: Value = serde_json::from_str(&shipment.header.body("ASN-1", "[]").unwrap()).unwrap();
    for field in fields {
        assert_eq!(body.pointer(field), Some(&json!(null)), "{field}");
    }
}

#[test]
fn a_vendor_is_identified_by_its_number() {
    let vendor = ("/shipment_type", Some(json!("vendor")));
    for good in [json!(42), json!("0042")] {
        let shipment = shipment(&[vendor.clone(), ("/to/identifier", Some(good.clone()))]);
        assert_eq!(json!(shipment.header.to.identifier), good);
    }
    for bad in [json!("V-42"), json!(-1), json!("4.2")] {
        let errors = reader().errors(&[vendor.clone(), ("/to/identifier", Some(bad))]);
        assert_eq!(errors, [("$.to.identifier".to_owned(), Code::Invalid)]);
    }
    reader().rejects("/to/identifier", Some(json!(42)), Code::InvalidType);
}

#[test]
fn all_invalid_fields_are_reported_at_once() {
    let errors = reader().errors(&[
        ("/status", Some(json!("lost"))),
        ("/to/address/zip", None),
        ("/cartons/0/details/0/condition", Some(json!("Z"))),
        ("/cartons/0/details/1/quantity", Some(json!("1"))),
    ]);
    let fields: Vec<_> = errors.iter().map(|(field, _)| field.as_str()).collect();
    let details = ["$.cartons[0].details[0].condition", "$.cartons[0].details[1].quantity"];
    assert_eq!(fields, ["$.to.address.zip", "$.status", details[0], details[1]]);
}

#[test]
fn a_status_changes_only_along_its_transitions() {
    use AsnStatus::{Canceled, Delivered, Pending, Shipped};
    let allowed = [(Pending, Shipped), (Pending, Canceled), (Shipped, Delivered)];
    let now = "2026-03-05T00:00:00Z".parse().unwrap();
    let all = [Pending, Shipped, Delivered, Canceled];
    for from in all {
        for to in all {
            let mut header = shipment(&[("/status", Some(json!(from.as_str())))]).header;
            let moved = header.change(ShipmentChange { ship_date: None, status: Some(to) }, now);
            if from == to {
                assert_eq!(moved, Ok(false), "{from:?}");
            } else if allowed.contains(&(from, to)) {
                assert_eq!((moved, header.status, header.timestamp), (Ok(true), to, Some(now)));
            } else {
                assert_eq!(moved.unwrap_err().errors[0].field, "$.status", "{from:?} {to:?}");
                assert_eq!(header.status, from);
            }
        }
    }
}

#[test]
fn the_ship_date_can_change_until_a_final_status() {
    let date = "2026-04-01T00:00:00Z".parse().unwrap();
    for (status, changes) in
        [("pending", true), ("shipped", true), ("delivered", false), ("canceled", false)]
    {
        let mut header = shipment(&[("/status", Some(json!(status)))]).header;
        let moved = header.change(ShipmentChange { ship_date: Some(date), status: None }, date);
        assert_eq!(moved.is_ok(), changes, "{status}");
    }
}

#[test]
fn a_change_needs_a_status_or_a_date() {
    let read =
        |value: Value| ShipmentChange::read(&document(&value)).map_err(|invalid| invalid.errors);
    assert!(read(json!({ "status": "shipped" })).is_ok());
    assert!(read(json!({ "ship_date": "2026-04-01T00:00:00Z" })).is_ok());
    assert_eq!(read(json!({})).unwrap_err()[0].code, Code::MissingField);
    assert_eq!(read(json!({ "status": "lost" })).unwrap_err()[0].code, Code::Invalid);
    assert_eq!(
        read(json!({ "carrier": "x", "status": "shipped" })).unwrap_err()[0].field,
        "$.carrier"
    );
}

/// Two warehouses: one with all settings, one without any.
fn warehouses() -> Warehouses {
    let full = json!({
        "external_identifier": "DC-7",
        "address": {
            "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501",
        },
        "settings": { "stock_transfer_identifier": "STO-7" },
    });
    let full = Document::from(full).read(object(Warehouse::read)).unwrap();
    [("reno".to_owned(), full), ("york".to_owned(), Warehouse::default())].into()
}

#[track_caller]
fn check_locations(changes: &[(&str, Value)], expected: Result<(&str, &str, &str), &str>) {
    let set: Vec<Change<'_>> =
        changes.iter().map(|(pointer, value)| (*pointer, Some(value.clone()))).collect();
    let value = changed(outbound_shipment("ASN-1", 1), &set);
    let read = OutboundShipment::read(&document(&value), &warehouses());
    let read = read.map(|OutboundShipment { header, .. }| {
        (header.from.identifier, header.to.identifier.to_string(), header.to.address.name)
    });
    let read = read.map_err(|invalid| invalid.errors[0].to_string());
    let read = match &read {
        Ok((from, to, name)) => Ok((from.as_str(), to.as_str(), name.as_str())),
        Err(error) => Err(error.as_str()),
    };
    assert_eq!(read, expected, "{changes:?}");
}

#[test]
fn warehouses_fill_the_locations_of_a_report() {
    let (from, to) = (json!({ "warehouse": "reno" }), json!({ "warehouse": "reno" }));
    let freight = |from: &Value, to: &Value, expected| {
        let changes =
            [("/shipment_type", json!("freight")), ("/from", from.clone()), ("/to", to.clone())];
        check_locations(&changes, expected);
    };
    freight(&from, &to, Ok(("DC-7", "DC-7", "Dock 7")));
    // Without an external identifier, ours is sent.
    freight(&json!({ "warehouse": "york" }), &to, Ok(("york", "DC-7", "Dock 7")));
    // The values of the report win.
    let given = json!({ "warehouse": "york", "identifier": "X", "type": "store" });
    freight(&given, &to, Ok(("X", "DC-7", "Dock 7")));
    let address = json!({ "name": "N", "street": "S", "city": "C", "state": "NV", "zip": "1" });
    let given = json!({ "warehouse": "reno", "identifier": "Y", "address": address });
    freight(&from, &given, Ok(("DC-7", "Y", "N")));
    freight(
        &json!({ "warehouse": "rome" }),
        &to,
        Err("$.from.warehouse: invalid (there is no warehouse rome)"),
    );
    let bare = json!({ "warehouse": "york", "address": address });
    freight(
        &from,
        &bare,
        Err("$.to.warehouse: invalid (warehouse york has no external identifier)"),
    );
    let bare = json!({ "warehouse": "york", "identifier": "Y" });
    freight(&from, &bare, Err("$.to.address: missing_field"));
}

#[test]
fn the_type_of_a_shipment_chooses_the_identifier_of_its_destination() {
    let none = ["/tracking_number", "/carrier", "/carrier_payment_type"];
    let mut transfer: Vec<_> = none.into_iter().map(|field| (field, Value::Null)).collect();
    transfer.push(("/shipment_type", json!("stock_transfer")));
    transfer.push(("/to", json!({ "warehouse": "reno" })));
    transfer.push(("/from", json!({ "warehouse": "york" })));
    check_locations(&transfer, Ok(("york", "STO-7", "Dock 7")));
    transfer.push(("/to/warehouse", json!("york")));
    let error = "$.to.warehouse: invalid (warehouse york has no stock transfer identifier)";
    check_locations(&transfer, Err(error));
    let vendor = |to: Value| {
        [
            ("/shipment_type", json!("vendor")),
            ("/from", json!({ "warehouse": "reno" })),
            ("/to", to),
        ]
    };
    let to = json!({ "warehouse": "reno", "identifier": 42 });
    check_locations(&vendor(to), Ok(("DC-7", "42", "Dock 7")));
    let to = json!({ "warehouse": "reno" });
    check_locations(&vendor(to), Err("$.to.identifier: missing_field"));
}

#[test]
fn flags_and_references_come_from_the_inbound_asn() {
    let inbound = json!({
        "asn_number": "IN-1", "from": { "identifier": "S", "type": "store" },
        "to": { "identifier": "reno", "type": "warehouse" }, "eligibility_flags": ["resale"],
        "reference": { "type": "RMA", "identifier": "R-1" },
        "cartons": [{ "details": [
            { "line_identifier": "1", "sku": "A", "eligibility_flags": ["outlet"] },
            { "line_identifier": "2", "sku": "B" },
        ] }],
    });
    let inbound = InboundAsn::read(&document(&inbound)).unwrap();
    let header = inbound.header.clone();
    let lines: Vec<_> = inbound.into_lines().collect();
    let mut shipment = shipment(&[
        ("/cartons/0/reference", Some(Value::Null)),
        ("/cartons/0/details/0/eligibility_flags", Some(Value::Null)),
        ("/cartons/0/details/1/eligibility_flags", Some(json!(["given"]))),
        ("/cartons/0/details/0/inbound_received_asn", Some(json!("IN-1"))),
        ("/cartons/0/details/1/inbound_received_asn", Some(json!("IN-1"))),
    ]);
    assert_eq!(shipment.received_units().count(), 2);
    shipment.complete(|detail| {
        assert_eq!(detail.inbound_received_asn.as_deref(), Some("IN-1"));
        Some(InboundFacts::new(&header, lines.first()))
    });
    let carton = &shipment.cartons[0];
    assert_eq!(carton.reference, header.reference);
    let flags = |index: usize| carton.details[index].eligibility_flags.clone().unwrap();
    assert_eq!((flags(0), flags(1)), (vec!["outlet".to_owned()], vec!["given".to_owned()]));
    let of_header = InboundFacts::new(&header, lines.get(1));
    assert_eq!(of_header.eligibility_flags, Some(vec!["resale".to_owned()]));
    // Units with different references leave the carton without one.
    let mut mixed = shipment.clone();
    mixed.cartons[0].reference = None;
    let first = mixed.cartons[0].details[0].line_identifier.clone();
    mixed.complete(|detail| {
        (detail.line_identifier == first).then(|| InboundFacts::new(&header, None))
    });
    assert_eq!(mixed.cartons[0].reference, None);
}
