//! Inbound ASNs and receipts.

use expect_test::expect;
use uuid::Uuid;

use super::super::sample::{inbound_asn, receipt};
use super::super::{ExpectedUnit, InboundAsn, InventoryReceipt, ReceiptBatch};
use super::*;

fn asn_reader() -> Reader {
    let read = |document: &Document| InboundAsn::read(document).err();
    Reader { sample: inbound_asn("IN-1", 2), read }
}

fn receipt_reader() -> Reader {
    let read = |document: &Document| ReceiptBatch::read(document).err();
    Reader { sample: receipt("IN-1", 1), read }
}

fn completed(asn: &Value, receipt: &Value) -> Result<InventoryReceipt, String> {
    let asn = InboundAsn::read(&document(asn)).unwrap();
    let header = asn.header.clone();
    let line = asn.into_lines().next().unwrap();
    let receipts = ReceiptBatch::read(&document(receipt)).unwrap();
    let mut receipt = receipts.receipts[0].clone();
    let expected = ExpectedUnit { header: &header, line: &line };
    receipt.complete(&expected, |field| receipts.path(0, field)).map_err(|error| error.field)?;
    Ok(receipt)
}

#[test]
fn an_asn_is_validated() {
    let reader = asn_reader();
    reader.requires(&[
        "/asn_number",
        "/from",
        "/from/identifier",
        "/from/type",
        "/to",
        "/to/identifier",
        "/to/type",
        "/cartons",
        "/cartons/0/details",
        "/cartons/0/details/0/line_identifier",
        "/cartons/0/reference/type",
        "/cartons/0/reference/identifier",
    ]);
    reader.allows_absent(&[
        "/program_identifier",
        "/shipment_identifier",
        "/tracking_number",
        "/merchant",
        "/concept",
        "/cartons/0/identifier",
        "/cartons/0/details/0/reference_line_identifier",
        "/cartons/0/details/0/unit_identifier",
        "/cartons/0/details/0/upc",
        "/cartons/0/details/0/quantity",
        "/cartons/0/details/0/return_reason",
    ]);
    for object in ["", "/cartons/0/details/0"] {
        let field = |name: &str| format!("{object}/{name}");
        for name in ["merchant", "concept"] {
            reader.limits_texts(0, &[&field(name)]);
        }
        for name in ["upc", "serial_number", "tracking_number"] {
            reader.limits_texts(0, &[&field(name)]);
            reader.accepts(&[(&field(name), Some(json!(36_000_291_452_i64)))]);
        }
        reader.accepts(&[(&field("asin"), Some(json!(306_406_152)))]);
        reader.rejects(&field("asin"), Some(json!("B00")), Code::Invalid);
    }
    reader.accepts_numbers_and_strings(&[
        "/asn_number",
        "/program_identifier",
        "/from/identifier",
        "/cartons/0/details/0/line_identifier",
        "/cartons/0/reference/identifier",
    ]);
    for bad in ["", "a b", "a/b", "ASN1;touch$IFS", "a.b", "ä", "a\u{1b}", &"x".repeat(256)] {
        reader.rejects("/asn_number", Some(json!(bad)), Code::Invalid);
    }
    for quantity in [0, 100_001] {
        let pointer = "/cartons/0/details/0/quantity";
        reader.rejects(pointer, Some(json!(quantity)), Code::Invalid);
    }
    let same = ("/cartons/0/details/1/line_identifier", Some(json!("L-1")));
    let errors = reader.errors(&[same]);
    assert_eq!(errors, [("$.cartons[0].details[1].line_identifier".to_owned(), Code::Invalid)]);
    let unidentified = [("/cartons/0/details/0/sku", None), ("/cartons/0/details/0/upc", None)];
    let errors = reader.errors(&unidentified);
    assert_eq!(errors, [("$.cartons[0].details[0].sku".to_owned(), Code::MissingField)]);
}

/// Every line repeats the identifier and the reference of its carton.
#[test]
fn the_fields_of_a_carton_cannot_make_an_asn_huge() {
    let asn = |units: usize, identifier: usize| {
        let mut asn = inbound_asn("IN-1", units);
        asn["cartons"][0]["identifier"] = json!("\u{10348}".repeat(identifier));
        InboundAsn::read(&document(&asn)).err().map(|invalid| invalid.errors[0].field.clone())
    };
    assert_eq!(asn(8_000, 255), None);
    assert_eq!(asn(8_300, 255), Some("$.cartons".to_owned()));
    assert_eq!(asn(20_000, 10), None);
}

#[test]
fn a_unit_appears_once_in_an_asn() {
    let reader = asn_reader();
    let (one, other) = ("/cartons/0/details/0", "/cartons/0/details/1");
    let unit = |line: &str, name: &str| format!("{line}/{name}");
    let unit_id = "unit_identifier";
    let client_id = "client_unit_identifier";
    for (first, second) in
        [(unit_id, unit_id), (unit_id, client_id), (client_id, unit_id), (client_id, client_id)]
    {
        let first = unit(one, first);
        let second_at = unit(other, second);
        let without = [unit(one, unit_id), unit(other, unit_id)];
        let without = without.iter().map(|name| (name.as_str(), None));
        let same = [(first.as_str(), Some(json!("7"))), (second_at.as_str(), Some(json!(7)))];
        let changes: Vec<_> = without.chain(same).collect();
        let field = format!("$.cartons[0].details[1].{second}");
        assert_eq!(reader.errors(&changes), [(field, Code::Invalid)]);
        let several = (unit(other, "quantity"), Some(json!(2)));
        let changes: Vec<_> =
            changes.into_iter().chain([(several.0.as_str(), several.1)]).collect();
        reader.accepts(&changes);
    }
}

#[test]
fn a_receipt_is_validated() {
    let reader = receipt_reader();
    reader.requires(&["/asn_number", "/line_identifier", "/to/identifier"]);
    reader.rejects("/initial_condition", None, Code::MissingField);
    reader.accepts_only("/initial_condition", &["N", "R", "A", "B", "C", "X", "TT"]);
    reader.accepts(&[
        ("/initial_condition", None),
        ("/reject_reason", Some(json!("not what was announced"))),
    ]);
    reader.accepts_numbers_and_strings(&[
        "/asn_number",
        "/line_identifier",
        "/unit_identifier",
        "/to/identifier",
        "/location_identifier",
        "/client_unit_identifier",
    ]);
    for bad in
        [json!("B00"), json!("B00EXAMPL!"), json!("B00EXAMPLES"), json!(-1), json!(10_i64.pow(10))]
    {
        reader.rejects("/asin", Some(bad), Code::Invalid);
    }
    for name in ["/asin", "/upc", "/serial_number", "/tracking_number"] {
        reader.accepts(&[(name, Some(json!(306_406_152)))]);
        reader.rejects(name, Some(json!(1.5)), Code::InvalidType);
    }
    reader.limits_texts(0, &["/user_login", "/serial_number", "/sku", "/tracking_number"]);
    reader.rejects("/reference", Some(json!("RMA-1")), Code::InvalidType);
}

#[test]
fn an_error_in_a_batch_has_the_index_of_its_receipt() {
    let good = receipt("IN-1", 1);
    let bad = changed(good.clone(), &[("/initial_condition", Some(json!("?")))]);
    let invalid = ReceiptBatch::read(&document(&json!({ "receipts": [good, bad] }))).unwrap_err();
    assert_eq!(invalid.errors[0].field, "$.receipts[1].initial_condition");
    let empty = ReceiptBatch::read(&document(&json!({ "receipts": [] }))).unwrap_err();
    assert_eq!(empty.errors[0].field, "$.receipts");
}

#[test]
fn a_batch_has_at_most_a_thousand_receipts() {
    let read = |count| {
        let receipts: Vec<_> = (1..=count).map(|unit| receipt("IN-1", unit)).collect();
        ReceiptBatch::read(&document(&json!({ "receipts": receipts })))
    };
    assert_eq!(read(1000).unwrap().receipts.len(), 1000);
    assert_eq!(read(1001).unwrap_err().errors[0].field, "$.receipts");
}

#[test]
fn a_line_of_several_units_identifies_no_unit() {
    let quantity = "/cartons/0/details/0/quantity";
    let asn = changed(
        inbound_asn("IN-1", 1),
        &[
            (quantity, Some(json!(5))),
            ("/cartons/0/details/0/unit_identifier", Some(json!("U-1"))),
            ("/cartons/0/details/0/client_unit_identifier", Some(json!("P-1"))),
            ("/cartons/0/details/0/serial_number", Some(json!("SN-1"))),
        ],
    );
    let own = ["/client_unit_identifier", "/serial_number"];
    let unidentified = changed(receipt("IN-1", 1), &own.map(|field| (field, None)));
    assert_eq!(completed(&asn, &unidentified).unwrap_err(), "$.unit_identifier");
    let named = changed(unidentified.clone(), &[("/unit_identifier", Some(json!("U-7")))]);
    let unit = completed(&asn, &named).unwrap();
    assert_eq!(unit.unit_identifier.unwrap().to_string(), "U-7");
    assert!(unit.client_unit_identifier.is_none() && unit.serial_number.is_none());
    let one = changed(asn, &[(quantity, Some(json!(1)))]);
    let unit = completed(&one, &unidentified).unwrap();
    assert_eq!(unit.unit_identifier.unwrap().to_string(), "U-1");
    assert_eq!(unit.serial_number, Some("SN-1".into()));
}

#[test]
fn an_empty_text_is_filled_from_the_asn() {
    let texts = ["sku", "upc", "return_reason", "merchant", "concept", "tracking_number"];
    let mut absent = receipt("IN-1", 1);
    let mut empty = receipt("IN-1", 1);
    for name in texts {
        absent.as_object_mut().unwrap().remove(name);
        empty[name] = json!("");
    }
    let asn = inbound_asn("IN-1", 1);
    let absent = completed(&asn, &absent).unwrap();
    assert!(absent.sku.is_some() && absent.tracking_number.is_some());
    assert_eq!(completed(&asn, &empty).unwrap(), absent);
}

#[test]
fn a_field_of_the_line_comes_before_the_header() {
    let names = ["merchant", "concept", "asin", "upc", "serial_number", "tracking_number"];
    let mut report = receipt("IN-1", 1);
    let mut asn = inbound_asn("IN-1", 1);
    for name in names {
        report.as_object_mut().unwrap().remove(name);
        asn[name] = json!("INHEADER99");
        asn["cartons"][0]["details"][0].as_object_mut().unwrap().remove(name);
    }
    for (index, name) in names.into_iter().enumerate() {
        let from_header = json!(completed(&asn, &report).unwrap());
        assert_eq!(from_header[name], "INHEADER99");
        let value = if index < 2 { json!("of the line") } else { json!(1_000_000_000 + index) };
        asn["cartons"][0]["details"][0][name] = value.clone();
        let from_line = json!(completed(&asn, &report).unwrap());
        assert_eq!(from_line[name], value);
    }
}

#[test]
fn the_serial_number_of_an_asn_belongs_to_its_only_unit() {
    let mut report = receipt("IN-1", 1);
    report.as_object_mut().unwrap().remove("serial_number");
    for (units, expected) in [(1, Some("SN-9".into())), (2, None)] {
        let mut asn = inbound_asn("IN-1", units);
        asn["serial_number"] = json!("SN-9");
        assert_eq!(completed(&asn, &report).unwrap().serial_number, expected);
    }
}

#[test]
fn absent_fields_are_filled_from_the_asn() {
    let message = completed(&inbound_asn("IN-1", 1), &receipt("IN-1", 1)).unwrap();
    expect![[r#"
        {
          "program_identifier": 7,
          "asn_number": "IN-1",
          "shipment_identifier": "RMA-100",
          "from": {
            "identifier": "shopper-1",
            "type": "customer"
          },
          "to": {
            "identifier": 12,
            "type": "warehouse",
            "original_identifier": 12
          },
          "carton_identifier": "BOX-1",
          "reference": {
            "type": "RMA",
            "identifier": "RMA-100",
            "alternate_identifier": 100
          },
          "line_identifier": "L-1",
          "reference_line_identifier": 1,
          "unit_identifier": "U-1",
          "sku": "TENT-001",
          "upc": "036000291452",
          "serial_number": "SN-1",
          "initial_condition": "A",
          "initial_channel": "Outlet",
          "return_reason": "Too small",
          "user_login": "mwagner",
          "merchant": "Acme Outdoor",
          "concept": "Acme Kids",
          "asin": "B00EXAMPLE",
          "tracking_number": "1Z999",
          "location_identifier": "A-01-02",
          "client_unit_identifier": 1
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&message).unwrap());
}

#[test]
fn fields_of_the_receipt_take_precedence() {
    let fields = [
        ("/tracking_number", Some(json!("1Z-OTHER"))),
        ("/unit_identifier", Some(json!(99))),
        ("/to/identifier", Some(json!("WH-2"))),
        ("/carton_identifier", Some(json!(3))),
    ];
    let message =
        json!(completed(&inbound_asn("IN-1", 1), &changed(receipt("IN-1", 1), &fields)).unwrap());
    for (pointer, value) in fields {
        assert_eq!(message.pointer(pointer), value.as_ref());
    }
    assert_eq!(message["to"]["original_identifier"], 12);
}

#[test]
fn a_unit_needs_an_identifier() {
    let unidentified = ("/cartons/0/details/0/unit_identifier", None);
    let asn = changed(inbound_asn("IN-1", 1), &[unidentified]);
    let message = completed(&asn, &receipt("IN-1", 1)).unwrap();
    assert_eq!(json!(message.unit_identifier), 1, "the client's license plate");
    let receipt = changed(receipt("IN-1", 1), &[("/client_unit_identifier", None)]);
    assert_eq!(completed(&asn, &receipt).unwrap_err(), "$.unit_identifier");
}

#[test]
fn only_a_unit_of_an_rma_causes_an_event() {
    let now = "2026-03-05T00:00:00Z".parse().unwrap();
    let event = |message: &InventoryReceipt| {
        message.unit_received(&"acme".parse().unwrap(), Uuid::nil(), now)
    };
    let message = completed(&inbound_asn("IN-1", 1), &receipt("IN-1", 1)).unwrap();
    let received = event(&message).unwrap();
    assert_eq!(received.rma_identifier, "RMA-100");
    assert_eq!(received.reference_line_identifier.as_deref(), Some("1"));
    assert_eq!(
        (received.unit_identifier.as_str(), received.condition.as_deref()),
        ("U-1", Some("A"))
    );
    let other = [("/cartons/0/reference/type", Some(json!("ForwardOrder")))];
    let message = completed(&changed(inbound_asn("IN-1", 1), &other), &receipt("IN-1", 1)).unwrap();
    assert_eq!(event(&message), None);
}
