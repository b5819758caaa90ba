//! Returns that nobody sends, and parcels that come late.

use super::receiving::unit_received;
use super::*;

fn scan(number: &str) -> CarrierReport {
    report(TrackingEvent::InTransit, Some(number))
}

fn shown(rma: &Rma) -> String {
    let active: Vec<_> = rma.active_units().map(|unit| unit.id.clone()).collect();
    format!("{} [{}]", rma.status, paths(&active))
}

#[test]
fn a_return_without_a_scan_expires() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    let change = Ok(rma.expire(minute(1)));
    assert_eq!(summary(&change), "rma.expired; changed A/L1/1 A/L1/2");
    assert_eq!(shown(&rma), "CANCELED [A/L1/1 A/L1/2]");
    assert!(rma.units.iter().all(|unit| unit.is_expired));
    assert!(rma.expire(minute(2)).is_empty());
    assert_eq!(rma.send_by(&settings(true)), None);
}

#[test]
fn only_units_that_still_wait_for_a_scan_expire() {
    let units = || {
        let refund = |path| (path, Resolution::Refund);
        [refund("A/L1/1"), ("A/L1/2", variant(1000)), refund("A/L2/1")]
    };
    let new = |method| rma_with("RMA-1", method, &units(), &settings(true));
    let mail = || new(ReturnMethod::MailBack);
    let expired = |mut rma: Rma| {
        let due = !rma.deadlines(&settings(true)).is_empty();
        let change = rma.expire(minute(5));
        assert_eq!(due, !change.is_empty());
        paths(&change.units)
    };
    // The exchanged unit was shipped ahead, or will be.
    assert_eq!(expired(mail()), "A/L1/1 A/L2/1");
    assert_eq!(expired(new(ReturnMethod::ExpressReturns)), "A/L1/1 A/L2/1");
    assert_eq!(expired(new(ReturnMethod::CustomerKeep)), "");
    let mut failed = mail();
    failed.exchange_failed(&[unit("A/L1/2")], minute(1)).unwrap();
    assert_eq!(expired(failed), "A/L1/1 A/L1/2 A/L2/1");
    let mut refunded = mail();
    refunded.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(1)).unwrap();
    assert_eq!(expired(refunded), "A/L2/1");
    let mut labeled = mail();
    labeled.track(&report(TrackingEvent::Label, Some("1Z")), minute(1)).unwrap();
    labeled.track(&report(TrackingEvent::Failure, Some("1Z")), minute(2)).unwrap();
    assert_eq!(expired(labeled.clone()), "A/L1/1 A/L2/1", "neither is a scan");
    labeled.track(&scan("1Z"), minute(3)).unwrap();
    assert_eq!(expired(labeled), "");
    let mut received = mail();
    let finding = Finding::Received { unit: unit("A/L1/2") };
    received.receive(&Receipt { findings: vec![finding] }, minute(1)).unwrap();
    assert_eq!(expired(received), "");
    let mut closed = mail();
    closed.close_receiving(minute(1)).unwrap();
    assert_eq!(expired(closed), "");
}

#[test]
fn a_late_scan_brings_back_the_units_that_are_free() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.track(&report(TrackingEvent::Label, Some("1Z")), minute(1)).unwrap();
    rma.expire(minute(2));
    let refused =
        rma.clone().track_late(&report(TrackingEvent::Failure, Some("1Z")), |_| true, minute(3));
    assert_eq!(summary(&refused), "refused as canceled: the return was canceled");
    let mut whole = rma.clone();
    let change = whole.track_late(&scan("1Z"), |_| true, minute(3));
    assert_eq!(summary(&change), "rma.in_transit; changed A/L1/1 A/L1/2");
    assert_eq!(paths(&change.unwrap().reopened), "A/L1/1 A/L1/2");
    assert_eq!(shown(&whole), "CREATED [A/L1/1 A/L1/2]");
    assert_eq!((whole.canceled_at, whole.expired_units().count()), (None, 0));

    let first = |id: &UnitId| *id == unit("A/L1/1");
    let lost = "sent_after_expiry: return RMA-1: line L1 of order A, unit 2 was sent after the return expired, \
                and cannot be returned again";
    let mut half = rma.clone();
    let change = half.track_late(&scan("1Z"), first, minute(3));
    let text = summary(&change);
    assert!(
        text.starts_with("rma.in_transit; changed A/L1/1; late A/L1/2; sent_after_expiry"),
        "{text} {lost}"
    );
    assert_eq!(shown(&half), "CREATED [A/L1/1]");

    let before = rma.clone();
    let change = rma.track_late(&scan("1Z"), |_| false, minute(3));
    let text = summary(&change);
    assert!(text.starts_with("no message; late A/L1/1 A/L1/2; sent_after_expiry"), "{text}");
    assert_eq!(rma, before);
}

#[test]
fn a_scan_that_names_units_brings_back_only_these() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.expire(minute(2));
    let units = Some(vec![unit("A/L1/1"), unit("A/L1/2")]);
    let named = CarrierReport { units, ..scan("1Z") };
    let mut half = rma.clone();
    half.track_late(&named, |id| id.unit == 2, minute(3)).unwrap();
    assert_eq!(shown(&half), "CREATED [A/L1/2]");
    let one = CarrierReport { units: Some(vec![unit("A/L1/1")]), ..scan("1Z") };
    rma.track_late(&one, |_| true, minute(3)).unwrap();
    assert_eq!(shown(&rma), "CREATED [A/L1/1]");
}

#[test]
fn a_parcel_with_a_failure_before_the_expiry_reports_its_scan() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    rma.track(&report(TrackingEvent::Failure, Some("1Z")), minute(1)).unwrap();
    rma.expire(minute(2));
    let change = rma.track_late(&scan("1Z"), |_| true, minute(3));
    assert_eq!(summary(&change), "rma.in_transit; changed A/L1/1");
    assert_eq!(rma.send_by(&settings(true)), None);
    assert_eq!(rma.deadlines(&settings(true)), []);
}

#[test]
fn the_units_of_a_closed_return_stay_expired() {
    let units = [("A/L1/1", Resolution::Refund), ("A/L1/2", variant(1000))];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(true));
    rma.expire(minute(1));
    assert_eq!(shown(&rma), "CREATED [A/L1/2]");
    rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/2"]), minute(2)).unwrap();
    let change = rma.track_late(&scan("1Z"), |_| true, minute(3));
    let text = summary(&change);
    assert!(
        text.starts_with("rma.in_transit; changed A/L1/2; late A/L1/1; sent_after_expiry"),
        "{text}"
    );
    assert_eq!(shown(&rma), "REFUNDED [A/L1/2]");
}

#[test]
fn a_late_receipt_brings_a_return_back() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    rma.expire(minute(1));
    let receipt = Receipt { findings: vec![Finding::Received { unit: unit("A/L1/2") }] };
    assert_eq!(rma.receive(&receipt, minute(2)), Err(TransitionError::Canceled));
    let change = rma.receive_late(&receipt, |_| true, minute(2));
    assert_eq!(summary(&change), "rma.received; changed A/L1/2");
    assert_eq!(shown(&rma), "CREATED [A/L1/1 A/L1/2]");
}

#[test]
fn a_late_receipt_brings_back_only_the_units_of_its_parcel() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2", "A/L2/1"]);
    for (number, units) in [("1Z", vec![unit("A/L1/1")]), ("2Z", vec![unit("A/L1/2")])] {
        let label = report(TrackingEvent::Label, Some(number));
        rma.track(&CarrierReport { units: Some(units), ..label }, minute(1)).unwrap();
    }
    rma.expire(minute(2));
    let receive = |id: &str| {
        let mut rma = rma.clone();
        let receipt = Receipt { findings: vec![Finding::Received { unit: unit(id) }] };
        rma.receive_late(&receipt, |_| true, minute(3)).unwrap();
        shown(&rma)
    };
    assert_eq!(receive("A/L1/2"), "CREATED [A/L1/2]");
    assert_eq!(receive("A/L2/1"), "CREATED [A/L2/1]");
    let mut reported = rma.clone();
    let sku = reported.units[2].sku.clone();
    let received = unit_received(Some("L2"), Some(&sku), None);
    reported.receive_unit_late(&received, |_| true, minute(3)).unwrap();
    assert_eq!(shown(&reported), "CREATED [A/L2/1]");
}

#[test]
fn a_canceled_return_does_not_come_back() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    rma.cancel(None, minute(1)).unwrap();
    assert_eq!(rma.track_late(&scan("1Z"), |_| true, minute(2)), Err(TransitionError::Canceled));
}

#[test]
fn a_return_expires_at_the_end_of_a_day_of_the_merchant() {
    let rma = rma("RMA-1", &["A/L1/1"]);
    let mut settings = settings(true);
    settings.time_zone = "America/New_York".to_owned();
    settings.returns.send_within_days = 3;
    // The clocks change on 8 March; the return was created at noon on 10 March.
    assert_eq!(rma.send_by(&settings), Some(time("2026-03-14T04:00:00Z")));
    let deadline = rma.deadlines(&settings)[0];
    assert_eq!((deadline.started_at, deadline.period.days), (rma.created_at, 3));
    assert_eq!(Some(deadline.due_at), rma.send_by(&settings));
    // An exchanged unit does not expire, and should be sent by then too.
    let units = [("A/L1/1", variant(1000))];
    let exchanged = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings);
    assert_eq!(exchanged.send_by(&settings), rma.send_by(&settings));
    assert_eq!(exchanged.deadlines(&settings), []);
    let kept = rma_with("RMA-1", ReturnMethod::CustomerKeep, &units, &settings);
    assert_eq!(kept.send_by(&settings), None);
}
