//! The next step that a return needs.

use super::reviews::{by_staff, review};
use super::*;
use crate::merchant::ReviewDecision;
use TrackingEvent::{Accepted, Delivered, Failure, InTransit, Label, NotDroppedOff, Returned};

fn tracked(events: &[TrackingEvent], managed_receiving: bool) -> Rma {
    let units = [("A/L1/1", Resolution::Refund), ("A/L1/2", Resolution::Refund)];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(managed_receiving));
    for event in events {
        rma.track(&report(*event, Some("1Z")), minute(1)).unwrap();
    }
    rma
}

#[test]
fn parcels_decide_about_the_next_step() {
    let list = |events: &[TrackingEvent]| tracked(events, false).work_list();
    for events in [&[][..], &[Label], &[Label, NotDroppedOff], &[Label, Failure]] {
        assert_eq!(list(events), WorkList::NotSent, "{events:?}");
    }
    for events in [&[Accepted][..], &[Label, InTransit], &[InTransit, Failure]] {
        assert_eq!(list(events), WorkList::OnItsWay, "{events:?}");
    }
    assert_eq!(list(&[InTransit, Delivered]), WorkList::ToRefund);
    assert_eq!(list(&[InTransit, Returned]), WorkList::NotSent);
}

#[test]
fn our_warehouse_receives_units_before_their_refund() {
    let mut rma = tracked(&[Delivered], true);
    assert_eq!(rma.work_list(), WorkList::OnItsWay);
    let finding = Finding::Received { unit: unit("A/L1/2") };
    rma.receive(&Receipt { findings: vec![finding] }, minute(2)).unwrap();
    assert_eq!(rma.work_list(), WorkList::ToRefund);
    rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/2"]), minute(3)).unwrap();
    assert_eq!(rma.work_list(), WorkList::OnItsWay, "the other unit is not received");
    rma.close_receiving(minute(4)).unwrap();
    assert_eq!((rma.status, rma.work_list()), (RmaStatus::PartialRefund, WorkList::ToRefund));
    rma.refund(&refunded_units("R2", "RMA-1", &["A/L1/1"]), minute(5)).unwrap();
    assert_eq!(rma.work_list(), WorkList::Done);
}

#[test]
fn units_that_the_shopper_keeps_are_refunded_next() {
    let units = [("A/L1/1", Resolution::Refund)];
    let kept = rma_with("RMA-1", ReturnMethod::CustomerKeep, &units, &settings(true));
    assert_eq!(kept.work_list(), WorkList::ToRefund);
}

#[test]
fn a_review_and_an_end_come_before_parcels() {
    let settings = settings(true);
    let units = [("A/L1/1", Resolution::Refund)];
    let review = review(&settings);
    let mut rma = rma_in_review("RMA-1", ReturnMethod::MailBack, &units, &settings, Some(&review));
    assert_eq!(rma.work_list(), WorkList::ToReview);
    rma.decide(by_staff(ReviewDecision::Decline, minute(1))).unwrap();
    assert_eq!(rma.work_list(), WorkList::Done);
    let mut canceled = tracked(&[Label], true);
    canceled.cancel(Some(&[unit("A/L1/1")]), minute(1)).unwrap();
    assert_eq!((canceled.work_list(), canceled.paid_amount_cents()), (WorkList::NotSent, 980));
    canceled.cancel(None, minute(2)).unwrap();
    assert_eq!((canceled.work_list(), canceled.paid_amount_cents()), (WorkList::Done, 980));
}
