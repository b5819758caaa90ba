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

/// Takes the steps, and tells of each.
fn walk(rma: &mut Rma, steps: &[Option<Receipt>]) -> String {
    let mut story = String::new();
    for (step, minutes) in steps.iter().zip(1..) {
        let result = match step {
            Some(receipt) => rma.receive(receipt, minute(minutes)),
            None => rma.close_receiving(minute(minutes)),
        };
        story += &format!("{}: {}\n", told(&result), statuses(rma));
    }
    story
}

#[test]
fn a_return_arrives_in_several_parcels() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2", "A/L2/1", "B/L1/1"]);
    let note = Some("torn".to_owned());
    let story = walk(
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
        rma.received; changed A/L1/1 A/L1/2; received_short: return RMA-1: unit 2 of line L1 of order A was not in its parcel: CREATED [RECEIVED PENDING PENDING PENDING]
        no message; late A/L1/1: CREATED [RECEIVED PENDING PENDING PENDING]
        rma.received; changed A/L2/1; received_damaged: return RMA-1: unit 1 of line L2 of order A arrived damaged: CREATED [RECEIVED PENDING RECEIVED PENDING]
        no message; received_over: more arrived for return RMA-1 than it has, by 2: CREATED [RECEIVED PENDING RECEIVED PENDING]
        no message; changed B/L1/1; received_wrong: return RMA-1: unit 1 of line L1 of order B was not what arrived: CREATED [RECEIVED PENDING RECEIVED PENDING]
        rma.received; changed A/L1/1: CREATED [PENDING PENDING RECEIVED PENDING]
        refused as nothing_received: nothing was received that could be undone: CREATED [PENDING PENDING RECEIVED PENDING]
        refused as unknown_unit: the return has no such unit: CREATED [PENDING PENDING RECEIVED PENDING]
        rma.received; changed A/L1/2: CREATED [PENDING RECEIVED RECEIVED PENDING]
        rma.received; changed A/L1/1 B/L1/1; closed: PARTIAL_REFUND [NOT_RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
        no message: PARTIAL_REFUND [NOT_RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
        refused as receiving_closed: the receiving of this return is closed: PARTIAL_REFUND [NOT_RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
        rma.received; changed A/L1/1: PARTIAL_REFUND [RECEIVED RECEIVED RECEIVED NOT_RECEIVED]
    "#]].assert_eq(&story);
    assert!(rma.units[2].is_damaged);
}

#[test]
fn what_a_second_look_finds_is_noted() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    let damaged = || receipt(vec![Finding::Damaged { unit: unit("A/L1/1"), note: None }]);
    let wrong = |path| {
        Some(receipt(vec![Finding::Wrong { unit: unit(path), found_sku: None, note: None }]))
    };
    let story = walk(
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
        no message; changed A/L1/1; received_wrong: return RMA-1: unit 1 of line L1 of order A was not what arrived: CREATED [RECEIVED PENDING]
        rma.received; changed A/L1/2; closed: PARTIAL_REFUND [RECEIVED NOT_RECEIVED]
        no message; changed A/L1/2; received_wrong: return RMA-1: unit 2 of line L1 of order A was not what arrived: PARTIAL_REFUND [RECEIVED NOT_RECEIVED]
    "#]].assert_eq(&story);
    assert!(rma.units[0].is_damaged);
}

#[test]
fn closing_after_everything_was_refunded_changes_nothing_the_merchant_sees() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    rma.refund(&covers("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    let closed = rma.close_receiving(minute(3));
    assert_eq!(told(&closed), "no message; closed");
    assert!(!closed.unwrap().is_empty());
    assert_eq!(rma.status, RmaStatus::Refunded);
    assert_eq!(rma.updated_at, minute(2));
    let again = rma.close_receiving(minute(4)).unwrap();
    assert!(again.is_empty());
}

#[test]
fn a_refund_after_the_receiving_was_closed_completes_the_return() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    rma.refund(&covers("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    rma.close_receiving(minute(3)).unwrap();
    assert_eq!(statuses(&rma), "PARTIAL_REFUND [RECEIVED NOT_RECEIVED]");
    let refunded = rma.refund(&covers("R2", "RMA-1", &["A/L1/2"]), minute(4));
    assert_eq!(told(&refunded), "rma.refunded; changed A/L1/2");
    assert_eq!(statuses(&rma), "REFUNDED [RECEIVED NOT_RECEIVED]");
}

#[test]
fn a_receipt_that_takes_back_what_it_says_is_not_told() {
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
fn what_is_refunded_is_not_unreceived() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.receive(&receipt(vec![received("A/L1/1")]), minute(1)).unwrap();
    rma.refund(&covers("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    let undone = rma.receive(&receipt(vec![Finding::Undo { unit: unit("A/L1/1") }]), minute(3));
    assert_eq!(undone, Err(TransitionError::Refunded));
}

#[test]
fn we_receive_only_for_merchants_who_want_it_and_only_what_comes_back() {
    let refund = [("A/L1/1", Resolution::Refund)];
    let step = receipt(vec![received("A/L1/1")]);
    let mut own = rma_of("RMA-1", ReturnMethod::MailBack, &refund, &settings(false));
    assert_eq!(own.receive(&step, minute(1)), Err(TransitionError::NotManaged));
    assert_eq!(own.close_receiving(minute(1)), Err(TransitionError::NotManaged));
    let mut kept = rma_of("RMA-2", ReturnMethod::CustomerKeep, &refund, &settings(true));
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
fn a_warehouse_names_lines_and_codes_and_not_units() {
    let mut rma = rma("RMA-1", &["A/L1/1", "B/L1/1", "A/L2/1"]);
    rma.units[1].sku = "HAT".to_owned();
    let mut arrive = |line: Option<&str>, sku: Option<&str>, reject_reason: Option<&str>| {
        let received = unit_received(line, sku, reject_reason);
        format!("{}\n", told(&rma.receive_unit(&received, minute(1))))
    };
    let story = [
        arrive(Some("L1"), Some("HAT"), None),
        arrive(Some("L1"), Some("HAT"), None),
        arrive(Some("L1"), None, None),
        arrive(None, Some("SHIRT-M"), Some("worn")),
        arrive(None, Some("SHIRT-M"), None),
        arrive(None, Some("SOCK"), None),
    ];
    expect![[r#"
        rma.received; changed B/L1/1
        rma.received; changed A/L1/1
        no message; received_over: more arrived for return RMA-1 than it has, by 1
        no message; changed A/L2/1; received_wrong: return RMA-1: unit 1 of line L2 of order A was not what arrived
        rma.received; changed A/L2/1
        no message; received_over: more arrived for return RMA-1 than it has, by 1
    "#]].assert_eq(&story.concat());
}

#[test]
fn a_unit_is_known_by_its_sku_and_by_its_upc() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L2/1", "A/L3/1"]);
    rma.units[1].upc = Some("0099999".to_owned());
    // The order gave no SKU: the UPC stands in for it.
    (rma.units[2].sku, rma.units[2].upc) = ("0055555".to_owned(), Some("0055555".to_owned()));
    let mut arrive = |sku: Option<&str>, upc: Option<&str>| {
        let upc = upc.map(str::to_owned);
        let received = UnitReceived { upc, ..unit_received(None, sku, None) };
        format!("{}\n", told(&rma.receive_unit(&received, minute(1))))
    };
    let story = [
        arrive(None, Some("0099999")),
        // Like with like: no UPC is a SKU, and no SKU a UPC.
        arrive(Some("0012345"), None),
        arrive(None, Some("SHIRT-M")),
        arrive(Some("OTHER"), Some("0055555")),
        arrive(Some("SHIRT-M"), None),
    ];
    expect![[r#"
        rma.received; changed A/L2/1
        no message; received_over: more arrived for return RMA-1 than it has, by 1
        no message; received_over: more arrived for return RMA-1 than it has, by 1
        rma.received; changed A/L3/1
        rma.received; changed A/L1/1
    "#]]
    .assert_eq(&story.concat());
}

#[test]
fn findings_are_read_field_by_field() {
    let a = json!({ "order_identifier": "A", "order_line_item_identifier": "L1", "unit": 1 });
    let with = |more: serde_json::Value| {
        let mut body = a.clone();
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    };
    let body = json!({ "findings": [
        with(json!({ "finding": "received" })),
        with(json!({ "finding": "damaged", "note": "torn" })),
        with(json!({ "finding": "short" })),
        with(json!({ "finding": "wrong", "found_sku": "SOCK" })),
        { "finding": "over", "sku": "HAT", "quantity": 2 },
        with(json!({ "finding": "undo" })),
    ] });
    assert_eq!(json!(read(&body).unwrap()), body);
    let bad = json!({ "findings": [{ "finding": "lost" }, { "finding": "over" }, { "finding": "undo" }] });
    let errors = |body: &serde_json::Value| {
        let errors = read(body).unwrap_err().errors;
        errors.iter().map(|error| format!("{error}\n")).collect::<String>()
    };
    expect![[r#"
        $.findings[0].finding: invalid (must be one of received, damaged, short, wrong, over, undo)
        $.findings[1].quantity: missing_field
        $.findings[2].order_identifier: missing_field
        $.findings[2].order_line_item_identifier: missing_field
        $.findings[2].unit: missing_field
    "#]]
    .assert_eq(&errors(&bad));
    let dropped = json!({ "findings": [
        with(json!({ "finding": "received", "note": "torn" })),
        with(json!({ "finding": "damaged", "found_sku": "SOCK" })),
        with(json!({ "finding": "over", "quantity": 1 })),
    ] });
    expect![[r#"
        $.findings[0].note: invalid (unknown field: known are finding, order_identifier, order_line_item_identifier, unit)
        $.findings[1].found_sku: invalid (unknown field: known are finding, order_identifier, order_line_item_identifier, unit, note)
        $.findings[2].order_identifier: invalid (unknown field: known are finding, sku, quantity, note)
        $.findings[2].order_line_item_identifier: invalid (unknown field: known are finding, sku, quantity, note)
        $.findings[2].unit: invalid (unknown field: known are finding, sku, quantity, note)
    "#]]
    .assert_eq(&errors(&dropped));
}
