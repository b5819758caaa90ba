//! Property tests: any sequence of events leaves a return consistent.

use proptest::prelude::*;

use crate::merchant::ReviewDecision;
use crate::message_kind::MessageKind;

use super::*;

#[derive(Debug, Clone)]
enum RmaEvent {
    Track(CarrierReport),
    Receive(Finding),
    Close,
    Cancel(Option<Vec<UnitId>>),
    Refund(usize),
    Placed(usize),
    Failed(usize),
    Undeliverable(usize),
    Expire,
    /// The deadline of exchanged units.
    Unreturned,
    Waive(Option<Vec<UnitId>>),
    Decide(ReviewDecision),
    /// A report for a return that may have expired, and whether its units are free.
    TrackLate(CarrierReport, bool),
    ReceiveLate(Finding, bool),
}

const PATHS: [&str; 4] = ["A/L1/1", "A/L1/2", "A/L2/1", "B/L1/1"];

fn any_unit() -> impl Strategy<Value = UnitId> {
    prop::sample::select(&PATHS[..]).prop_map(unit)
}

fn rma_event() -> impl Strategy<Value = RmaEvent> {
    let index = 0..PATHS.len();
    let event = prop::sample::select(TrackingEvent::ALL);
    let number = prop::option::of(prop::sample::select(vec!["1Z-1", "1Z-2"]));
    let units = || prop::option::of(prop::collection::vec(any_unit(), 1..3));
    let time = prop::option::of((0..3_i64).prop_map(minute));
    let url =
        prop::option::of(prop::sample::select(vec!["https://l.example/1", "https://l.example/2"]));
    let track = (event, number, units(), time, url)
        .prop_map(|(event, number, units, occurred_at, url)| {
            let label = url.filter(|_| event == TrackingEvent::Label).map(printable);
            RmaEvent::Track(CarrierReport { units, occurred_at, label, ..report(event, number) })
        })
        .boxed();
    let finding = (any_unit(), 0..6)
        .prop_map(|(unit, kind)| match kind {
            0 | 1 => Finding::Received { unit },
            2 => Finding::Damaged { unit, note: None },
            3 => Finding::Short { unit },
            4 => Finding::Wrong { unit, found_sku: None, note: None },
            _ => Finding::Undo { unit },
        })
        .boxed();
    let late = (track.clone(), any::<bool>()).prop_filter_map("a report", |(event, is_free)| {
        let RmaEvent::Track(report) = event else { return None };
        Some(RmaEvent::TrackLate(report, is_free))
    });
    let received_late = (finding.clone(), any::<bool>())
        .prop_map(|(finding, is_free)| RmaEvent::ReceiveLate(finding, is_free));
    let decision = prop::sample::select(vec![ReviewDecision::Approve, ReviewDecision::Decline]);
    prop_oneof![
        3 => track,
        2 => late,
        1 => received_late,
        2 => Just(RmaEvent::Expire),
        2 => Just(RmaEvent::Unreturned),
        1 => units().prop_map(RmaEvent::Waive),
        3 => finding.prop_map(RmaEvent::Receive),
        1 => Just(RmaEvent::Close),
        1 => units().prop_map(RmaEvent::Cancel),
        2 => index.clone().prop_map(RmaEvent::Refund),
        2 => decision.prop_map(RmaEvent::Decide),
        1 => index.clone().prop_map(RmaEvent::Placed),
        1 => index.clone().prop_map(RmaEvent::Failed),
        1 => index.prop_map(RmaEvent::Undeliverable),
    ]
}

fn apply(rma: &mut Rma, event: &RmaEvent, now: DateTime<Utc>) -> Result<Change, TransitionError> {
    match event {
        RmaEvent::Track(report) => rma.track(report, now),
        RmaEvent::Receive(finding) => {
            rma.receive(&Receipt { findings: vec![finding.clone()] }, now)
        }
        RmaEvent::Close => rma.close_receiving(now),
        RmaEvent::Cancel(units) => rma.cancel(units.as_deref(), now),
        RmaEvent::Refund(at) => rma.refund(&refunded_units("R1", "RMA-1", &[PATHS[*at]]), now),
        RmaEvent::Placed(at) => rma.exchange_placed(&placed_units(&[unit(PATHS[*at])]), "X-1", now),
        RmaEvent::Failed(at) => rma.exchange_failed(&[unit(PATHS[*at])], now),
        RmaEvent::Undeliverable(at) => rma.exchange_undeliverable(&[unit(PATHS[*at])]),
        RmaEvent::Expire => Ok(rma.expire(now)),
        RmaEvent::Unreturned => Ok(rma.report_unreturned(|_| true, now)),
        RmaEvent::Waive(units) => {
            let note = "The carrier lost it".to_owned();
            rma.waive(units.as_deref(), &Waiver { at: now, by: "jo".to_owned(), note })
        }
        RmaEvent::Decide(decision) => rma.decide(reviews::by_staff(*decision, now)),
        RmaEvent::TrackLate(report, is_free) => rma.track_late(report, |_| *is_free, now),
        RmaEvent::ReceiveLate(finding, is_free) => {
            rma.receive_late(&Receipt { findings: vec![finding.clone()] }, |_| *is_free, now)
        }
    }
}

/// Staff undo a receipt; such an event never counts as late.
fn is_undo(event: &RmaEvent) -> bool {
    matches!(
        event,
        RmaEvent::Receive(Finding::Undo { .. }) | RmaEvent::ReceiveLate(Finding::Undo { .. }, _)
    )
}

/// A late event may make expired units part of the return again.
fn may_reopen(event: &RmaEvent) -> bool {
    matches!(event, RmaEvent::TrackLate(..) | RmaEvent::ReceiveLate(..))
}

/// A finding that is recorded again when it is repeated.
fn is_repeatable(event: &RmaEvent) -> bool {
    matches!(
        event,
        RmaEvent::Receive(Finding::Short { .. } | Finding::Wrong { .. })
            | RmaEvent::ReceiveLate(Finding::Short { .. } | Finding::Wrong { .. }, _)
    )
}

fn any_return() -> impl Strategy<Value = Rma> {
    let resolution = || {
        prop::sample::select(vec![
            Resolution::Refund,
            Resolution::Refund,
            variant(1000),
            variant(900),
            Resolution::GiftCard,
        ])
    };
    let resolutions = prop::collection::vec(resolution(), PATHS.len());
    let method = prop::sample::select(ReturnMethod::ALL);
    let reviewed = prop::bool::weighted(0.3);
    (resolutions, method, any::<bool>(), reviewed).prop_map(
        |(resolutions, method, managed, reviewed)| {
            let units: Vec<_> = PATHS.into_iter().zip(resolutions).collect();
            let settings = settings(managed);
            let review = reviewed.then(|| reviews::review(&settings));
            rma_in_review("RMA-1", method, &units, &settings, review.as_ref())
        },
    )
}

fn check_no_step_back(before: &Rma, after: &Rma, event: &RmaEvent) {
    let is_reopened = may_reopen(event) && before.status == RmaStatus::Canceled;
    assert!(is_reopened || after.status >= before.status);
    assert!(after.updated_at >= before.updated_at);
    for (before, after) in before.units.iter().zip(&after.units) {
        assert!(after.package_tracking_status >= before.package_tracking_status);
        assert!(is_undo(event) || after.receiving_status >= before.receiving_status);
        assert!(before.refunded_by.is_none() || after.refunded_by == before.refunded_by);
        let is_back = may_reopen(event) && before.is_expired && after.canceled_at.is_none();
        assert!(is_back || before.canceled_at.is_none() || after.canceled_at == before.canceled_at);
        assert_eq!((after.amounts, &after.id), (before.amounts, &before.id));
    }
}

/// The changes lead from the states before to those after, and no unit is reported twice.
fn check_guarantees(before: &Rma, after: &Rma, change: &Change) {
    let state = |unit: &RmaUnit| unit.guarantee.as_ref().map(|it| it.state);
    let count = |rma: &Rma, wanted| {
        let units = rma.units.iter().filter(|unit| state(unit) == Some(wanted));
        i64::try_from(units.count()).unwrap()
    };
    use GuaranteeState::{Due, Met, Open, Waived};
    for wanted in [Open, Met, Due, Waived] {
        let added = change.guarantees.iter().filter(|it| it.to == wanted).count();
        let removed = change.guarantees.iter().filter(|it| it.from == Some(wanted)).count();
        let difference = i64::try_from(added).unwrap() - i64::try_from(removed).unwrap();
        assert_eq!(count(after, wanted) - count(before, wanted), difference, "{wanted}");
    }
    for (before, after) in before.units.iter().zip(&after.units) {
        let reported = |unit: &RmaUnit| unit.guarantee.as_ref().and_then(|it| it.unreturned_at);
        let is_reported = change.event == Some(ServiceEvent::ExchangeUnreturned)
            && change.units.contains(&after.id);
        assert_eq!(is_reported, reported(before).is_none() && reported(after).is_some());
        assert!(reported(before).is_none() || reported(after) == reported(before));
        assert!(state(before) != Some(Waived) || state(after) == Some(Waived));
        let is_placed = after.exchange_status == Some(ExchangeStatus::Placed);
        assert!(after.guarantee.is_none() || (is_placed && after.canceled_at.is_none()));
    }
}

/// Whether a parcel was scanned first after a failure, which no field of the message names.
fn has_first_scan(before: &Rma, after: &Rma) -> bool {
    let mut units = before.units.iter().zip(&after.units);
    units.any(|(before, after)| before.failed_before_scan && !after.failed_before_scan)
}

fn check_consistent(rma: &Rma) {
    contract::check_message(&rma.message_in(*MessageKind::Rma.versions().last().unwrap()));
    let all_refunded = rma.active_units().all(|unit| unit.refunded_by.is_some());
    assert_eq!(rma.status == RmaStatus::Refunded, all_refunded);
    let is_ended = matches!(rma.status, RmaStatus::Canceled | RmaStatus::Declined);
    assert_eq!(is_ended, rma.canceled_at.is_some());
    let waits = rma.review.as_ref().is_some_and(|it| it.decided.is_none());
    assert!(waits || !rma.is_in_review());
    let is_kept = rma.return_method == ReturnMethod::CustomerKeep;
    for unit in &rma.units {
        let money = unit.refund_financials();
        let parts = money.service_refund_amount_cents + money.shopper_refund_amount_cents;
        assert_eq!(money.estimated_refund_amount_cents, parts);
        assert!(!is_kept || unit.package_tracking_status.is_none());
        assert!(unit.canceled_at.is_none() || unit.refunded_by.is_none());
        assert!(!unit.is_expired || unit.canceled_at.is_some());
    }
    let message = rma.message();
    assert!(!message.items.is_empty());
    contract::check_message(&message);
}

proptest! {
    #[test]
    fn a_return_stays_consistent_after_any_event(
        start in any_return(),
        events in prop::collection::vec(rma_event(), 1..25),
    ) {
        let mut rma = start;
        for (event, number) in events.iter().zip(1..) {
            let before = rma.clone();
            // Several events happen at the same time.
            let now = minute(number / 3);
            let result = apply(&mut rma, event, now);
            check_no_step_back(&before, &rma, event);
            check_consistent(&rma);

            let Ok(change) = result else {
                prop_assert_eq!(&rma, &before, "a refused event changes nothing");
                continue;
            };
            let newest = *MessageKind::Rma.versions().last().unwrap();
            let sent = RmaMessage { updated_at: minute(0), ..rma.message_in(newest) };
            let previous = RmaMessage { updated_at: minute(0), ..before.message_in(newest) };
            check_guarantees(&before, &rma, &change);
            // No field of the message names the refund of a unit.
            let is_refund = matches!(event, RmaEvent::Refund(_)) && !change.units.is_empty();
            let is_told = if before.is_in_review() {
                matches!(event, RmaEvent::Decide(ReviewDecision::Approve))
            } else {
                is_refund || has_first_scan(&before, &rma) || sent != previous
            };
            prop_assert_eq!(change.event.is_some(), is_told, "{:?}", event);
            prop_assert_eq!(change.event.is_some(), rma.updated_at > before.updated_at);
            prop_assert_eq!(change.is_empty() , rma == before && change.discrepancies.is_empty() && change.units.is_empty());

            let expected = rma.clone();
            if let Ok(again) = apply(&mut rma, event, now) {
                prop_assert_eq!(again.event, None, "a repeated event sends no message: {:?}", event);
                // A unit that cannot be returned again is reported each time, and stored once.
                let is_sent_late =
                    |it: &Discrepancy| matches!(it, Discrepancy::SentAfterExpiry { .. });
                let is_lost = again.units.is_empty() && again.discrepancies.iter().all(is_sent_late);
                prop_assert!(again.is_empty() || is_repeatable(event) || is_lost);
            }
            prop_assert_eq!(&rma, &expected);

            let json = serde_json::to_string(&rma).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Rma>(&json).unwrap(), &rma);
        }
    }

    #[test]
    fn an_accepted_event_changes_nothing_when_it_is_repeated_later(
        start in any_return(),
        events in prop::collection::vec(rma_event(), 1..25),
        prefix in 0..25usize,
    ) {
        let mut rma = start;
        let mut accepted = Vec::new();
        for (event, minutes) in events.into_iter().zip(1..) {
            let Some(event) = deduplicable(event) else { continue };
            if apply(&mut rma, &event, minute(minutes)).is_ok() {
                accepted.push(event);
            }
        }
        let expected = rma.clone();
        for event in accepted.iter().take(prefix) {
            if let Ok(again) = apply(&mut rma, event, minute(99)) {
                prop_assert_eq!(again.event, None, "{:?}", event);
            }
            prop_assert_eq!(&rma, &expected, "{:?}", event);
        }
    }
}

/// The event in a form whose repetition the return recognises. It cannot
/// recognise a repeated second label or undo, so the service deduplicates those by event id.
fn deduplicable(event: RmaEvent) -> Option<RmaEvent> {
    match event {
        RmaEvent::Track(it) => {
            let units = None;
            Some(RmaEvent::Track(CarrierReport { units, ..report(it.event, Some("1Z-1")) }))
        }
        // The service deduplicates these by event id.
        RmaEvent::TrackLate(..)
        | RmaEvent::ReceiveLate(..)
        | RmaEvent::Expire
        | RmaEvent::Unreturned
        | RmaEvent::Decide(_)
        | RmaEvent::Waive(_) => None,
        event => (!is_undo(&event)).then_some(event),
    }
}
