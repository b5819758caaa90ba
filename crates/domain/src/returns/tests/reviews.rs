//! Returns that wait for review by the merchant.

use super::*;
use crate::merchant::{ReviewDecision, ReviewTerms};
use ReviewDecision::{Approve, Decline};

/// A review that approves the return after three days.
pub(super) fn review(settings: &Settings) -> ReturnReview {
    let terms = ReviewTerms { within_days: 3, then: Approve };
    ReturnReview::new(terms, "often", minute(0), settings)
}

pub(super) fn by_staff(decision: ReviewDecision, at: DateTime<Utc>) -> DecidedReview {
    let by = Some("jo".to_owned());
    DecidedReview { decision, at, by, note: Some("Worn".to_owned()) }
}

/// A return of a unit for a refund, one for a variant and one for a gift card.
fn requested() -> Rma {
    let units = [
        ("A/L1/1", Resolution::Refund),
        ("A/L1/2", variant(1000)),
        ("A/L2/1", Resolution::GiftCard),
    ];
    let settings = settings(true);
    let review = review(&settings);
    rma_in_review("RMA-1", ReturnMethod::MailBack, &units, &settings, Some(&review))
}

fn exchanges(rma: &Rma) -> Vec<Option<ExchangeStatus>> {
    rma.units.iter().map(|unit| unit.exchange_status).collect()
}

#[test]
fn nothing_happens_to_a_return_that_waits_for_review() {
    let mut rma = requested();
    assert_eq!((rma.status, rma.first_event()), (RmaStatus::Requested, None));
    assert_eq!(exchanges(&rma), [None, None, None]);
    assert_eq!(rma.send_by(&settings(true)), None);
    let before = rma.clone();
    let waits = Err(TransitionError::InReview);
    let finding = Finding::Received { unit: unit("A/L1/1") };
    let receipt = Receipt { findings: vec![finding] };
    let received = receiving::unit_received(Some("L1"), None, None);
    let scan = report(TrackingEvent::InTransit, Some("1Z"));
    let label = report(TrackingEvent::Label, Some("1Z"));
    assert_eq!(rma.track(&label, minute(1)), waits);
    assert_eq!(rma.track_late(&scan, |_| true, minute(1)), waits);
    assert_eq!(rma.receive(&receipt, minute(1)), waits);
    assert_eq!(rma.receive_late(&receipt, |_| true, minute(1)), waits);
    assert_eq!(rma.receive_unit(&received, minute(1)), waits);
    assert_eq!(rma.close_receiving(minute(1)), waits);
    let refund = refunded_units("R1", "RMA-1", &["A/L1/1"]);
    assert_eq!(rma.refund(&refund, minute(1)), waits);
    assert!(rma.expire(minute(1)).is_empty());
    assert_eq!(rma, before);
}

#[test]
fn an_approval_starts_the_return() {
    let mut rma = requested();
    let change = rma.decide(by_staff(Approve, minute(2)));
    assert_eq!(summary(&change), "rma.created; changed A/L1/1 A/L1/2 A/L2/1");
    assert_eq!((rma.status, rma.first_event()), (RmaStatus::Created, Some(ServiceEvent::Created)));
    assert_eq!((rma.created_at, rma.updated_at), (minute(0), minute(2)));
    let pending = Some(ExchangeStatus::Pending);
    assert_eq!(exchanges(&rma), [None, pending, pending]);
    let decided = rma.review.as_ref().and_then(|review| review.decided.clone());
    assert_eq!(decided, Some(by_staff(Approve, minute(2))));
    let scan = report(TrackingEvent::InTransit, Some("1Z"));
    assert_eq!(
        summary(&rma.track(&scan, minute(3))),
        "rma.in_transit; changed A/L1/1 A/L1/2 A/L2/1"
    );
}

#[test]
fn the_time_to_send_counts_from_the_approval() {
    let mut settings = settings(true);
    settings.time_zone = "America/New_York".to_owned();
    settings.returns.send_within_days = 5;
    let refund = [("A/L1/1", Resolution::Refund)];
    let review = review(&settings);
    let mut rma = rma_in_review("RMA-1", ReturnMethod::MailBack, &refund, &settings, Some(&review));
    // The return was requested at noon on 10 March.
    let due_at = time("2026-03-14T04:00:00Z");
    let waiting = Deadline::new(DeadlineKind::Review, minute(0), 3, &settings);
    assert_eq!(waiting.due_at, due_at);
    assert_eq!(rma.deadlines(&settings), [waiting]);
    rma.decide(review.by_rule(due_at)).unwrap();
    let sending = Deadline::new(DeadlineKind::Send, due_at, 5, &settings);
    assert_eq!(rma.deadlines(&settings), [sending]);
    assert_eq!(rma.send_by(&settings), Some(time("2026-03-20T04:00:00Z")));
}

#[test]
fn a_decline_ends_the_return_without_a_message() {
    let mut rma = requested();
    let change = rma.decide(by_staff(Decline, minute(2)));
    assert_eq!(summary(&change), "no message; changed A/L1/1 A/L1/2 A/L2/1");
    assert_eq!((rma.status, rma.canceled_at), (RmaStatus::Declined, Some(minute(2))));
    assert!(rma.units.iter().all(|unit| unit.canceled_at == Some(minute(2))));
    assert_eq!((rma.updated_at, exchanges(&rma)), (minute(0), vec![None, None, None]));
    assert_eq!(rma.deadlines(&settings(true)), []);
    let declined = Err(TransitionError::Declined);
    assert_eq!(rma.cancel(None, minute(3)), declined);
    let scan = report(TrackingEvent::InTransit, Some("1Z"));
    assert_eq!(rma.track_late(&scan, |_| true, minute(3)), declined);
}

#[test]
fn a_return_is_decided_once() {
    let second = |first: Option<ReviewDecision>, decision| {
        let mut rma = requested();
        if let Some(first) = first {
            rma.decide(by_staff(first, minute(1))).unwrap();
        }
        let before = rma.clone();
        let refused = rma.decide(by_staff(decision, minute(2))).unwrap_err();
        assert_eq!(rma, before);
        refused
    };
    for decision in [Approve, Decline] {
        assert_eq!(second(Some(Approve), decision), TransitionError::Approved);
        assert_eq!(second(Some(Decline), decision), TransitionError::Declined);
    }
    let mut canceled = requested();
    canceled.decide(by_staff(Approve, minute(1))).unwrap();
    let units = [unit("A/L1/1")];
    canceled.cancel(Some(&units), minute(2)).unwrap();
    let again = canceled.decide(by_staff(Decline, minute(3)));
    assert_eq!(again, Err(TransitionError::Approved));
    let mut unreviewed = rma("RMA-1", &["A/L1/1"]);
    let refused = unreviewed.decide(by_staff(Approve, minute(1)));
    assert_eq!(refused, Err(TransitionError::NotInReview));
}

#[test]
fn a_shopper_cancels_before_the_decision() {
    let mut rma = requested();
    let one = [unit("A/L1/2")];
    let change = rma.cancel(Some(&one), minute(1));
    assert_eq!(summary(&change), "no message; changed A/L1/2", "an exchange is not placed yet");
    assert_eq!((rma.status, rma.updated_at), (RmaStatus::Requested, minute(0)));
    let mut approved = rma.clone();
    let change = approved.decide(by_staff(Approve, minute(2)));
    assert_eq!(summary(&change), "rma.created; changed A/L1/1 A/L2/1");
    assert_eq!(approved.message().items.len(), 2);
    assert_eq!(exchanges(&approved), [None, None, Some(ExchangeStatus::Pending)]);

    let change = rma.cancel(None, minute(2));
    assert_eq!(summary(&change), "no message; changed A/L1/1 A/L2/1");
    assert_eq!((rma.status, rma.canceled_at), (RmaStatus::Canceled, Some(minute(2))));
    let late = rma.decide(by_staff(Approve, minute(3)));
    assert_eq!(late, Err(TransitionError::Canceled));
}

#[test]
fn messages_have_only_the_statuses_of_the_contract() {
    let statuses: Vec<_> =
        RmaStatus::ALL.iter().map(|it| MessageStatus::from(*it).to_string()).collect();
    let expected = ["CREATED", "CREATED", "PARTIAL_REFUND", "REFUNDED", "CANCELED", "CANCELED"];
    assert_eq!(statuses, expected);
}
