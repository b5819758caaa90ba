use expect_test::expect;
use serde_json::json;

use super::*;
use crate::access::MerchantId;
use crate::json::{Document, ValidationError, object};
use crate::warehouse::UnitReceived;

fn receipt(findings: Vec<Finding>) -> Receipt {
    Receipt { findings }
}

fn received(path: &str) -> Finding {
    Finding::Received { unit: unit(path) }
}

fn statuses(rma: &Rma) -> String {
    let units = rma.units.iter().map(|unit| unit.receiving_status.to_string());
    format!("{} [{}]", rma.status, units.collect::<Vec<_>>().join(" "))
}

/// Applies receipts (`None` closes receiving) and summarises the effect of each.
fn apply_all(rma: &mut Rma, steps: &[Option<Receipt>]) -> String {
    let mut log = String::new();
    for (step, minutes) in steps.iter().zip(1..) {
        let result = match step {
            Some(receipt) => rma.receive(receipt, minute(minutes)),
            None => rma.close_receiving(minute(minutes)),
        };
        log += &format!("{}: {}\n", summary(&result), statuses(rma));
    }
    log
}

#[test]
fn a_return_can_arrive_in_several_parcels() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2", "A/L2/1", "B/L1/1"]);
    let note = Some("torn".to_owned());
    let log = apply_all(
        &mut rma,
        &[
            Some(receipt(vec![received("A/L1/1"), Finding::Short { unit: unit("A/L1/2") }])),
            Some(receipt(vec![received("A/L1/1")])),
            Some(receipt(vec![Finding::Damaged { unit: unit("A/L2/1"), note: note.clone() }])),
            Some(receipt(vec![Finding::Over { sku: Some("HAT".to_owned()), quantity: 2, note }])),
            Some(receipt(vec![Finding::Wrong {
                unit: unit("B/L1/1"),
                found_sku: Some("SOCK".to_owned()),
                note: None,
            }])),
            Some(receipt(vec![Finding::Undo { unit: unit("A/L1/1") }])),
            Some(receipt(vec![Finding::Undo { unit: unit("A/L1/1") }])),
            Some(receipt(vec![received("A/L1/2"), received("A/L9/1")])),
            Some(receipt(vec![received("A/L1/2")])),
            None,
            None,
            Some(receipt(vec![Finding::Undo { unit: unit("A/L1/2") }])),
            Some(receipt(vec![received("A/L1/1")])),
        ],
    );
    expect![[r#"
        rma.received; changed A/L1/1 A/L1/2; received_short: return RMA-1: unit 2 of line L1 of order A was missing from its parcel: CREATED [RECEIVED PENDING PENDING PENDING]
        no message; late A/L1/1: CREATED [RECEIVED PENDING PENDING PENDING]
        rma.received; changed A/L2/1; received_damaged: return RMA-1: unit 1 of line L2 of order A arrived damaged: CREATED [RECEIVED PENDING RECEIVED PENDING]
        no message; received_over: return RMA-1: received 2 more than it contains: CREATED [RECEIVED PENDING RECEIVED PENDING]
        no message; changed B/L1/1; received_wrong: return RMA-1: another item arrived in place of unit 1 of line L1 of order B: CREATED [RECEIVED PENDING RECEIVED PENDING]
        rma.received; changed A/L1/1: CREATED [PENDING PENDING RECEIVED PENDING]
        refused as nothing_received: the unit was not received, so there is nothing to undo: CREATED [PENDING PENDING RECEIVED PENDING]
        refused as unknown_unit: the return has no such unit: CREATED [PENDING PENDING RECEIVED PENDING]
        rma.received; changed A/L1/2: CREATED [PENDING RECEIVED RECEIVED PENDING]
        rma.received; changed A/L1/1 B/L1/1; closed: PARTIAL_REFUND [NOT_RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
        no message: PARTIAL_REFUND [NOT_RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
        refused as receiving_closed: receiving of this return is closed: PARTIAL_REFUND [NOT_RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
        rma.received; changed A/L1/1: PARTIAL_REFUND [RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
    "#]].assert_eq(&log);
    assert!(rma.units[2].is_damaged);
}

#[test]
fn a_second_inspection_is_recorded() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    let damaged = || receipt(vec![Finding::Damaged { unit: unit("A/L1/1"), note: None }]);
    let wrong = |path| {
        Some(receipt(vec![Finding::Wrong { unit: unit(path), found_sku: None, note: None }]))
    };
    let log = apply_all(
        &mut rma,
        &[
            Some(receipt(vec![received("A/L1/1")])),
            Some(damaged()),
            Some(damaged()),
            wrong("A/L1/1"),
            None,
            wrong("A/L1/2"),
        ],
    );
    expect![[r#"
        rma.received; changed A/L1/1: CREATED [RECEIVED PENDING]
        no message; changed A/L1/1; received_damaged: return RMA-1: unit 1 of line L1 of order A arrived damaged: CREATED [RECEIVED PENDING]
        no message; late A/L1/1: CREATED [RECEIVED PENDING]
        no message; changed A/L1/1; received_wrong: return RMA-1: another item arrived in place of unit 1 of line L1 of order A: CREATED [RECEIVED PENDING]
        rma.received; changed A/L1/2; closed: PARTIAL_REFUND [RECEIVED NOT_RECEIVED]
        no message; changed A/L1/2; received_wrong: return RMA-1: another item arrived in place of unit 2 of line L1 of order A: PARTIAL_REFUND [RECEIVED NOT_RECEIVED]
    "#]].assert_eq(&log);
    assert!(rma.units[0].is_damaged);
}

#[test]
fn closing_a_refunded_return_sends_no_message() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    let closed = rma.close_receiving(minute(3));
    assert_eq!(summary(&closed), "no message; closed");
    assert!(!closed.unwrap().is_empty());
    assert_eq!(rma.status, RmaStatus::Refunded);
    assert_eq!(rma.updated_at, minute(2));
    let again = rma.close_receiving(minute(4)).unwrap();
    assert!(again.is_empty());
}

#[test]
fn each_refund_sends_a_message_and_the_status_changes_with_the_last_unit() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    let first = refunded_units("R1", "RMA-1", &["A/L1/1"]);
    let last = refunded_units("R3", "RMA-1", &["A/L1/2"]);
    let mut step = |units: &[RefundedUnit], minutes| {
        let change = summary(&rma.refund(units, minute(minutes)));
        format!("{change}: {} {}\n", rma.status, (rma.updated_at - minute(0)).num_minutes())
    };
    let log = [
        step(&first, 1),
        step(&first, 2),
        // A refund of shipping names the return and no unit.
        step(&[], 3),
        step(&last, 4),
        step(&[], 5),
        step(&refunded_units("R9", "RMA-2", &["A/L1/2"]), 6),
    ];
    expect![[r"
        rma.partially_refunded; changed A/L1/1: CREATED 1
        no message; late A/L1/1: CREATED 1
        rma.partially_refunded: CREATED 3
        rma.refunded; changed A/L1/2: REFUNDED 4
        rma.refunded: REFUNDED 5
        no message: REFUNDED 5
    "]]
    .assert_eq(&log.concat());
}

#[test]
fn a_refund_after_closing_completes_the_return() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    rma.close_receiving(minute(3)).unwrap();
    assert_eq!(statuses(&rma), "PARTIAL_REFUND [RECEIVED NOT_RECEIVED]");
    let refunded = rma.refund(&refunded_units("R2", "RMA-1", &["A/L1/2"]), minute(4));
    assert_eq!(summary(&refunded), "rma.refunded; changed A/L1/2");
    assert_eq!(statuses(&rma), "REFUNDED [RECEIVED NOT_RECEIVED]");
}

#[test]
fn findings_that_cancel_each_other_out_send_no_message() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    let undo = |path| Finding::Undo { unit: unit(path) };
    let damaged = Finding::Damaged { unit: unit("A/L1/1"), note: None };
    let corrected = rma.receive(&receipt(vec![undo("A/L1/1"), damaged]), minute(2));
    assert_eq!(corrected.unwrap().event, None);
    assert!(rma.units[0].is_damaged);
    let mistaken = rma.receive(&receipt(vec![received("A/L1/2"), undo("A/L1/2")]), minute(3));
    assert_eq!(mistaken.unwrap().event, None);
    assert_eq!(
        (statuses(&rma).as_str(), rma.updated_at),
        ("CREATED [RECEIVED PENDING]", minute(1))
    );
}

#[test]
fn the_receipt_of_a_refunded_unit_cannot_be_undone() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    let undone = rma.receive(&receipt(vec![Finding::Undo { unit: unit("A/L1/1") }]), minute(3));
    assert_eq!(undone, Err(TransitionError::Refunded));
}

#[test]
fn only_managed_returns_that_come_back_are_received() {
    let refund = [("A/L1/1", Resolution::Refund)];
    let step = receipt(vec![received("A/L1/1")]);
    let mut unmanaged = rma_with("RMA-1", ReturnMethod::MailBack, &refund, &settings(false));
    assert_eq!(unmanaged.receive(&step, minute(1)), Err(TransitionError::NotManaged));
    assert_eq!(unmanaged.close_receiving(minute(1)), Err(TransitionError::NotManaged));
    let mut kept = rma_with("RMA-2", ReturnMethod::CustomerKeep, &refund, &settings(true));
    assert_eq!(kept.receive(&step, minute(1)), Err(TransitionError::CustomerKeeps));
    let mut canceled = rma("RMA-3", &["A/L1/1"]);
    canceled.cancel(None, minute(1)).unwrap();
    assert_eq!(canceled.receive(&step, minute(2)), Err(TransitionError::Canceled));
}

fn read(body: &serde_json::Value) -> Result<Receipt, ValidationError> {
    Document::from(body.clone()).read(object(Receipt::read_object))
}

pub(super) fn unit_received(
    line: Option<&str>,
    sku: Option<&str>,
    reject_reason: Option<&str>,
) -> UnitReceived {
    UnitReceived {
        merchant: MerchantId::try_from("acme".to_owned()).unwrap(),
        rma_identifier: "RMA-1".to_owned(),
        receipt: uuid::Uuid::nil(),
        asn_number: "ASN-1".to_owned(),
        reference_line_identifier: line.map(str::to_owned),
        sku: sku.map(str::to_owned),
        upc: None,
        unit_identifier: "LPN-1".to_owned(),
        condition: None,
        reject_reason: reject_reason.map(str::to_owned),
        received_at: minute(1),
    }
}

#[test]
fn the_warehouse_identifies_units_by_line_sku_or_upc() {
    let mut rma = rma("RMA-1", &["A/L1/1", "B/L1/1", "A/L2/1"]);
    rma.units[1].sku = "HAT".to_owned();
    let mut receive_one = |line: Option<&str>, sku: Option<&str>, reject_reason: Option<&str>| {
        let received = unit_received(line, sku, reject_reason);
        format!("{}\n", summary(&rma.receive_unit(&received, minute(1))))
    };
    let log = [
        receive_one(Some("L1"), Some("HAT"), None),
        receive_one(Some("L1"), Some("HAT"), None),
        receive_one(Some("L1"), None, None),
        receive_one(None, Some("SHIRT-M"), Some("worn")),
        receive_one(None, Some("SHIRT-M"), None),
        receive_one(None, Some("SOCK"), None),
    ];
    expect![[r#"
        rma.received; changed B/L1/1
        rma.received; changed A/L1/1
        no message; received_over: return RMA-1: received 1 more than it contains
        no message; changed A/L2/1; received_wrong: return RMA-1: another item arrived in place of unit 1 of line L2 of order A
        rma.received; changed A/L2/1
        no message; received_over: return RMA-1: received 1 more than it contains
    "#]].assert_eq(&log.concat());
}

#[test]
fn a_unit_matches_by_sku_or_by_upc() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L2/1", "A/L3/1"]);
    rma.units[1].upc = Some("0099999".to_owned());
    // An order line without a SKU uses the UPC as its SKU.
    (rma.units[2].sku, rma.units[2].upc) = ("0055555".to_owned(), Some("0055555".to_owned()));
    let mut receive_one = |sku: Option<&str>, upc: Option<&str>| {
        let upc = upc.map(str::to_owned);
        let received = UnitReceived { upc, ..unit_received(None, sku, None) };
        format!("{}\n", summary(&rma.receive_unit(&received, minute(1))))
    };
    let log = [
        receive_one(None, Some("0099999")),
        // A SKU never matches a UPC.
        receive_one(Some("0012345"), None),
        receive_one(None, Some("SHIRT-M")),
        receive_one(Some("OTHER"), Some("0055555")),
        receive_one(Some("SHIRT-M"), None),
    ];
    expect![[r#"
        rma.received; changed A/L2/1
        no message; received_over: return RMA-1: received 1 more than it contains
        no message; received_over: return RMA-1: received 1 more than it contains
        rma.received; changed A/L3/1
        rma.received; changed A/L1/1
    "#]]
    .assert_eq(&log.concat());
}

#[test]
fn every_invalid_field_of_a_finding_is_reported() {
    let unit = json!({ "order_identifier": "A", "order_line_item_identifier": "L1", "unit": 1 });
    let finding = |fields: serde_json::Value| {
        let mut body = unit.clone();
        for (key, value) in fields.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    };
    let body = json!({ "findings": [
        finding(json!({ "finding": "received" })),
        finding(json!({ "finding": "damaged", "note": "torn" })),
        finding(json!({ "finding": "short" })),
        finding(json!({ "finding": "wrong", "found_sku": "SOCK" })),
        { "finding": "over", "sku": "HAT", "quantity": 2 },
        finding(json!({ "finding": "undo" })),
    ] });
    assert_eq!(json!(read(&body).unwrap()), body);
    let invalid = json!({ "findings": [
        { "finding": "lost", "unit": "one", "note": 7 }, { "finding": "over" }, { "finding": "undo" },
    ] });
    let errors = |body: &serde_json::Value| {
        let errors = read(body).unwrap_err().errors;
        errors.iter().map(|error| format!("{error}\n")).collect::<String>()
    };
    expect![[r#"
        $.findings[0].finding: invalid (must be one of received, damaged, short, wrong, over, undo)
        $.findings[0].note: invalid_type (expected a string, found an integer)
        $.findings[0].order_identifier: missing_field
        $.findings[0].order_line_item_identifier: missing_field
        $.findings[0].unit: invalid_type (expected an integer, found a string)
        $.findings[1].quantity: missing_field
        $.findings[2].order_identifier: missing_field
        $.findings[2].order_line_item_identifier: missing_field
        $.findings[2].unit: missing_field
    "#]]
    .assert_eq(&errors(&invalid));
    let unknown = json!({ "findings": [
        finding(json!({ "finding": "received", "note": "torn" })),
        finding(json!({ "finding": "damaged", "found_sku": "SOCK" })),
        finding(json!({ "finding": "over", "quantity": 1 })),
    ] });
    expect![[r#"
        $.findings[0].note: invalid (unknown field: known are finding, order_identifier, order_line_item_identifier, unit)
        $.findings[1].found_sku: invalid (unknown field: known are finding, order_identifier, order_line_item_identifier, unit, note)
        $.findings[2].order_identifier: invalid (unknown field: known are finding, sku, quantity, note)
        $.findings[2].order_line_item_identifier: invalid (unknown field: known are finding, sku, quantity, note)
        $.findings[2].unit: invalid (unknown field: known are finding, sku, quantity, note)
    "#]]
    .assert_eq(&errors(&unknown));
}
