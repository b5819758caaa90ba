//! Exchanged units, and those that do not come back.

use super::*;
use crate::message_kind::MessageVersion;

/// A return of two units, of which the first is exchanged for a variant and the second for a gift card.
fn exchanged() -> Rma {
    let units = [("A/L1/1", variant(1000)), ("A/L1/2", Resolution::GiftCard)];
    rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(true))
}

fn place(rma: &mut Rma, unit_path: &str, at: i64) -> Change {
    rma.exchange_placed(&placed_units(&[unit(unit_path)]), "X-1", minute(at)).unwrap()
}

/// The states of the guarantees in the message.
fn shown(rma: &Rma) -> Vec<Option<&'static str>> {
    let items = rma.message_in(MessageVersion(4)).items;
    items.iter().map(|item| item.guarantee.map(GuaranteeState::as_str)).collect()
}

fn waiver(at: i64) -> Waiver {
    Waiver { at: minute(at), by: "jo".to_owned(), note: "The carrier lost it".to_owned() }
}

fn scan() -> CarrierReport {
    report(TrackingEvent::InTransit, Some("1Z"))
}

#[test]
fn a_unit_that_does_not_come_back_is_reported_once() {
    let mut rma = exchanged();
    assert_eq!(shown(&rma), [None, None]);
    assert!(rma.report_unreturned(|_| true, minute(1)).is_empty());
    let change = place(&mut rma, "A/L1/1", 1);
    let started = GuaranteeChange {
        from: None,
        to: GuaranteeState::Open,
        started_at: minute(1),
        amount_cents: 980,
    };
    assert_eq!(change.guarantees, std::slice::from_ref(&started));
    assert_eq!(shown(&rma), [Some("open"), None]);
    let change = rma.report_unreturned(|_| false, minute(9));
    let due = GuaranteeChange {
        from: Some(GuaranteeState::Open),
        to: GuaranteeState::Due,
        ..started.clone()
    };
    assert_eq!(change.guarantees, [due]);
    assert_eq!(summary(&Ok(change)), "rma.exchange_unreturned; changed A/L1/1");
    assert!(rma.is_overdue());
    assert!(rma.report_unreturned(|_| true, minute(10)).is_empty());
    // A later scan meets the guarantee; so does a receipt, until it is undone.
    let scanned = rma.clone().track(&scan(), minute(11)).unwrap();
    assert_eq!(scanned.guarantees[0].to, GuaranteeState::Met);
    let finding = |finding| Receipt { findings: vec![finding] };
    rma.receive(&finding(Finding::Received { unit: unit("A/L1/1") }), minute(12)).unwrap();
    assert_eq!((shown(&rma)[0], rma.is_overdue()), (Some("met"), false));
    rma.receive(&finding(Finding::Undo { unit: unit("A/L1/1") }), minute(13)).unwrap();
    assert_eq!(shown(&rma)[0], Some("due"));
    assert!(rma.report_unreturned(|_| true, minute(14)).is_empty(), "reported before");
}

#[test]
fn a_unit_that_came_back_first_is_due_only_if_its_receipt_is_undone() {
    let finding = |finding| Receipt { findings: vec![finding] };
    let mut rma = exchanged();
    rma.receive(&finding(Finding::Received { unit: unit("A/L1/1") }), minute(1)).unwrap();
    assert_eq!(rma.waive(None, &waiver(2)), Err(TransitionError::NotGuaranteed));
    place(&mut rma, "A/L1/1", 2);
    assert_eq!(shown(&rma), [Some("met"), None]);
    assert_eq!(summary(&rma.waive(None, &waiver(3))), "no message; late A/L1/1");
    assert!(rma.report_unreturned(|_| true, minute(4)).is_empty());
    rma.receive(&finding(Finding::Undo { unit: unit("A/L1/1") }), minute(5)).unwrap();
    assert_eq!(shown(&rma), [Some("open"), None]);
    assert_eq!(paths(&rma.report_unreturned(|_| false, minute(6)).units), "A/L1/1");
}

#[test]
fn a_unit_that_the_shopper_keeps_needs_no_guarantee() {
    let units = [("A/L1/1", variant(1000))];
    let mut kept = rma_with("RMA-2", ReturnMethod::CustomerKeep, &units, &settings(true));
    place(&mut kept, "A/L1/1", 1);
    assert_eq!(shown(&kept), [None]);
}

#[test]
fn a_refund_meets_the_guarantee() {
    let mut rma = exchanged();
    place(&mut rma, "A/L1/1", 1);
    rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    assert_eq!(shown(&rma)[0], Some("met"));
}

#[test]
fn a_first_scan_after_a_failure_meets_the_guarantee() {
    let mut rma = exchanged();
    place(&mut rma, "A/L1/1", 1);
    rma.track(&report(TrackingEvent::Failure, Some("1Z")), minute(2)).unwrap();
    assert_eq!(shown(&rma)[0], Some("open"));
    let change = rma.track(&scan(), minute(3));
    assert_eq!(summary(&change), "rma.in_transit; changed A/L1/1 A/L1/2");
    assert_eq!(shown(&rma)[0], Some("met"));
}

#[test]
fn each_exchange_order_has_its_own_deadline() {
    let mut rma = exchanged();
    let settings = settings(true);
    let starts = |rma: &Rma| -> Vec<_> {
        let own = rma.deadlines(&settings).into_iter();
        own.filter(|it| it.kind == DeadlineKind::Exchange).map(|it| it.started_at).collect()
    };
    place(&mut rma, "A/L1/2", 1);
    place(&mut rma, "A/L1/1", 2);
    assert_eq!(starts(&rma), [minute(1)]);
    assert_eq!(paths(&rma.clone().report_unreturned(|_| true, minute(3)).units), "A/L1/1 A/L1/2");
    assert_eq!(paths(&rma.report_unreturned(|_| false, minute(3)).units), "A/L1/2");
    assert_eq!(starts(&rma), [minute(2)]);
    assert_eq!(paths(&rma.report_unreturned(|_| false, minute(4)).units), "A/L1/1");
    assert!(starts(&rma).is_empty());
}

#[test]
fn a_waived_unit_stays_waived() {
    let mut rma = exchanged();
    place(&mut rma, "A/L1/1", 1);
    let other = [unit("A/L1/2")];
    assert_eq!(rma.waive(Some(&other), &waiver(2)), Err(TransitionError::NotGuaranteed));
    let change = rma.waive(None, &waiver(2));
    assert_eq!(summary(&change), "rma.guarantee_waived; changed A/L1/1");
    let again = rma.waive(None, &waiver(3));
    assert_eq!(summary(&again), "no message; late A/L1/1");
    assert!(rma.report_unreturned(|_| true, minute(4)).is_empty());
    rma.track(&scan(), minute(5)).unwrap();
    assert_eq!(shown(&rma)[0], Some("waived"));
}

#[test]
fn the_message_of_the_contract_has_no_guarantee() {
    let mut rma = exchanged();
    place(&mut rma, "A/L1/1", 1);
    let item = |version| serde_json::json!(rma.message_in(MessageVersion(version)).items[0]);
    assert_eq!((item(3).get("guarantee"), item(3).get("guarantee_amount_cents")), (None, None));
    assert_eq!(item(4)["guarantee_amount_cents"], 980);
    assert_eq!(rma.message(), rma.message_in(MessageVersion(3)));
}
