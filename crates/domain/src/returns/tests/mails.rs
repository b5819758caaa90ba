//! The occasions of mails to shoppers.

use super::reviews::{by_staff, review};
use super::*;
use crate::merchant::{MailEvent, ReviewDecision};

/// The occasion of a change and its units, in one line.
fn occasion(rma: &Rma, change: &Change) -> String {
    let units =
        |units: &[&RmaUnit]| paths(&units.iter().map(|it| it.id.clone()).collect::<Vec<_>>());
    let occasion = rma.mail_occasion(change);
    occasion.map_or_else(String::new, |it| format!("{} {}", it.event, units(&it.units)))
}

fn received(paths: &[&str]) -> Receipt {
    let findings = paths.iter().map(|path| Finding::Received { unit: unit(path) }).collect();
    Receipt { findings }
}

#[test]
fn a_return_is_received_once_no_unit_is_expected() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2", "A/L2/1"]);
    let first = rma.receive(&received(&["A/L1/1"]), minute(1)).unwrap();
    assert_eq!(occasion(&rma, &first), "");
    let undone = Receipt { findings: vec![Finding::Undo { unit: unit("A/L1/1") }] };
    let undone = rma.receive(&undone, minute(2)).unwrap();
    assert_eq!(occasion(&rma, &undone), "");
    let second = rma.receive(&received(&["A/L1/1", "A/L1/2"]), minute(3)).unwrap();
    assert_eq!(occasion(&rma, &second), "");
    // The third unit does not come.
    let closed = rma.close_receiving(minute(4)).unwrap();
    assert_eq!(occasion(&rma, &closed), "received A/L1/1 A/L1/2");
}

#[test]
fn a_return_of_which_nothing_arrived_is_not_received() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    let closed = rma.close_receiving(minute(1)).unwrap();
    assert_eq!(
        (closed.event, occasion(&rma, &closed)),
        (Some(ServiceEvent::Received), String::new())
    );
}

#[test]
fn each_refund_is_told_and_a_cancellation_is_none() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2", "A/L2/1"]);
    let first = rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(1)).unwrap();
    assert_eq!(occasion(&rma, &first), "refunded A/L1/1");
    let repeated = rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    assert_eq!(occasion(&rma, &repeated), "");
    let empty = rma.refund(&[], minute(3)).unwrap();
    assert_eq!(occasion(&rma, &empty), "");
    let second = rma.refund(&refunded_units("R2", "RMA-1", &["A/L1/2"]), minute(4)).unwrap();
    assert_eq!(occasion(&rma, &second), "refunded A/L1/2");
    let canceled = rma.cancel(Some(&[unit("A/L2/1")]), minute(5)).unwrap();
    assert_eq!(canceled.event, Some(ServiceEvent::Refunded));
    assert_eq!(occasion(&rma, &canceled), "");
}

#[test]
fn an_exchange_is_told_when_it_is_placed_and_not_when_it_is_paid() {
    let units = [("A/L1/1", variant(1000)), ("A/L1/2", Resolution::Refund)];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(true));
    let exchanged = [unit("A/L1/1")];
    let placed = rma.exchange_placed(&placed_units(&exchanged), "X-1", minute(1)).unwrap();
    assert_eq!(occasion(&rma, &placed), "exchange_placed A/L1/1");
    let paid = rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(2)).unwrap();
    assert_eq!(occasion(&rma, &paid), "");
}

#[test]
fn a_decision_about_a_review_is_told() {
    let settings = settings(true);
    let review = review(&settings);
    for (decision, expected) in [
        (ReviewDecision::Approve, "confirmed A/L1/1"),
        (ReviewDecision::Decline, "declined A/L1/1"),
    ] {
        let units = [("A/L1/1", Resolution::Refund)];
        let method = ReturnMethod::MailBack;
        let mut rma = rma_in_review("RMA-1", method, &units, &settings, Some(&review));
        let change = rma.decide(by_staff(decision, minute(1))).unwrap();
        assert_eq!(occasion(&rma, &change), expected);
    }
}

#[test]
fn a_shopper_is_reminded_once_some_days_before_the_expiry() {
    let mut settings = settings(true);
    let days = |rma: &Rma, settings: &Settings| {
        let deadlines = rma.deadlines(settings).into_iter();
        deadlines.map(|it| (it.kind, it.period.days)).collect::<Vec<_>>()
    };
    let (send, reminder) = (DeadlineKind::Send, DeadlineKind::Reminder);
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    assert_eq!(days(&rma, &settings), [(send, 30)], "the merchant sends no mails");
    settings.mails.reply_to = Some("returns@acme.example".to_owned());
    assert_eq!(days(&rma, &settings), [(reminder, 27), (send, 30)]);
    settings.returns.send_within_days = 3;
    assert_eq!(days(&rma, &settings), [(send, 3)], "there is no time for a reminder");
    settings.returns.send_within_days = 30;
    let before = rma.updated_at;
    let reminded = rma.remind(minute(1));
    assert_eq!(
        (reminded.event, occasion(&rma, &reminded)),
        (None, "about_to_expire A/L1/1".to_owned())
    );
    assert_eq!((rma.updated_at, rma.reminded_at), (before, Some(minute(1))));
    assert_eq!(days(&rma, &settings), [(send, 30)]);
    assert!(rma.remind(minute(2)).is_empty());
    let mut scanned = self::rma("RMA-2", &["A/L1/1"]);
    scanned.track(&report(TrackingEvent::InTransit, Some("1Z")), minute(1)).unwrap();
    assert!(days(&scanned, &settings).is_empty());
    assert!(scanned.remind(minute(2)).is_empty());
}

#[test]
fn only_a_withdrawal_is_acknowledged_also_while_it_waits_for_review() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    assert_eq!(rma.withdrawal_occasion(), None);
    rma.status = RmaStatus::Requested;
    let (name, email) = ("Mia Moreau".to_owned(), "mia@shopper.example".to_owned());
    rma.withdrawal = Some(Withdrawal { name, email });
    let occasion = rma.withdrawal_occasion().unwrap();
    assert_eq!((occasion.event, occasion.units.len()), (MailEvent::Withdrawal, 1));
}
