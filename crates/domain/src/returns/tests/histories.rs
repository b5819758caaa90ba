//! Returns that live through anything, in any order.

use proptest::prelude::*;

use super::*;
use crate::exchange::FailureCause;

#[derive(Debug, Clone)]
enum Happening {
    Track(CarrierReport),
    Receive(Finding),
    Close,
    Cancel(Option<Vec<UnitId>>),
    Refund(usize),
    Placed(usize),
    Failed(usize, FailureCause),
}

const PATHS: [&str; 4] = ["A/L1/1", "A/L1/2", "A/L2/1", "B/L1/1"];

fn any_unit() -> impl Strategy<Value = UnitId> {
    prop::sample::select(&PATHS[..]).prop_map(unit)
}

fn happening() -> impl Strategy<Value = Happening> {
    let index = 0..PATHS.len();
    let event = prop::sample::select(&TrackingEvent::ALL[..]);
    let number = prop::option::of(prop::sample::select(vec!["1Z-1", "1Z-2"]));
    let units = || prop::option::of(prop::collection::vec(any_unit(), 1..3));
    let time = prop::option::of((0..3_i64).prop_map(minute));
    let track = (event, number, units(), time).prop_map(|(event, number, units, occurred_at)| {
        Happening::Track(CarrierReport { units, occurred_at, ..report(event, number) })
    });
    let finding = (any_unit(), 0..6).prop_map(|(unit, kind)| match kind {
        0 | 1 => Finding::Received { unit },
        2 => Finding::Damaged { unit, note: None },
        3 => Finding::Short { unit },
        4 => Finding::Wrong { unit, found_sku: None, note: None },
        _ => Finding::Undo { unit },
    });
    let causes = vec![
        FailureCause::OutOfStock,
        FailureCause::AlreadyExchanged,
        FailureCause::Undeliverable,
        FailureCause::Abandoned,
    ];
    prop_oneof![
        3 => track,
        3 => finding.prop_map(Happening::Receive),
        1 => Just(Happening::Close),
        1 => units().prop_map(Happening::Cancel),
        2 => index.clone().prop_map(Happening::Refund),
        1 => index.clone().prop_map(Happening::Placed),
        1 => (index, prop::sample::select(causes)).prop_map(|(at, why)| Happening::Failed(at, why)),
    ]
}

fn happen(rma: &mut Rma, what: &Happening, now: DateTime<Utc>) -> Result<Change, TransitionError> {
    match what {
        Happening::Track(report) => rma.track(report, now),
        Happening::Receive(finding) => {
            rma.receive(&Receipt { findings: vec![finding.clone()] }, now)
        }
        Happening::Close => rma.close_receiving(now),
        Happening::Cancel(units) => rma.cancel(units.as_deref(), now),
        Happening::Refund(at) => rma.refund(&covers("R1", "RMA-1", &[PATHS[*at]]), now),
        Happening::Placed(at) => rma.exchange_placed(&[unit(PATHS[*at])], "X-1", now),
        Happening::Failed(at, cause) => rma.exchange_failed(&[unit(PATHS[*at])], *cause, now),
    }
}

/// A further step by a person, and no late event.
fn is_undo(what: &Happening) -> bool {
    matches!(what, Happening::Receive(Finding::Undo { .. }))
}

/// What the warehouse finds missing or in a unit's place; it may find it again.
fn is_note(what: &Happening) -> bool {
    matches!(what, Happening::Receive(Finding::Short { .. } | Finding::Wrong { .. }))
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
    let method = prop::sample::select(&ReturnMethod::ALL[..]);
    (resolutions, method, any::<bool>()).prop_map(|(resolutions, method, managed)| {
        let units: Vec<_> = PATHS.into_iter().zip(resolutions).collect();
        rma_of("RMA-1", method, &units, &settings(managed))
    })
}

fn check_forward(before: &Rma, after: &Rma, what: &Happening) {
    assert!(after.status >= before.status && after.updated_at >= before.updated_at);
    for (before, after) in before.units.iter().zip(&after.units) {
        assert!(after.package_tracking_status >= before.package_tracking_status);
        assert!(is_undo(what) || after.receiving_status >= before.receiving_status);
        assert!(before.refunded_by.is_none() || after.refunded_by == before.refunded_by);
        assert!(before.canceled_at.is_none() || after.canceled_at == before.canceled_at);
        assert_eq!((after.amounts, &after.id), (before.amounts, &before.id));
    }
}

fn check_sound(rma: &Rma) {
    let all_refunded = rma.active_units().all(|unit| unit.refunded_by.is_some());
    assert_eq!(rma.status == RmaStatus::Refunded, all_refunded);
    assert_eq!(rma.status == RmaStatus::Canceled, rma.canceled_at.is_some());
    let keeps = rma.return_method == ReturnMethod::CustomerKeep;
    for unit in &rma.units {
        let money = unit.refund_financials();
        let parts = money.service_refund_amount_cents + money.shopper_refund_amount_cents;
        assert_eq!(money.estimated_refund_amount_cents, parts);
        assert!(!keeps || unit.package_tracking_status.is_none());
        assert!(unit.canceled_at.is_none() || unit.refunded_by.is_none());
    }
    let message = rma.message();
    assert!(!message.items.is_empty());
    contract::check_message(&message);
}

proptest! {
    #[test]
    fn a_return_stays_sound_whatever_happens(
        start in any_return(),
        happenings in prop::collection::vec(happening(), 1..25),
    ) {
        let mut rma = start;
        for (what, number) in happenings.iter().zip(1..) {
            let before = rma.clone();
            // Several things happen at one moment.
            let now = minute(number / 3);
            let result = happen(&mut rma, what, now);
            check_forward(&before, &rma, what);
            check_sound(&rma);

            let Ok(change) = result else {
                prop_assert_eq!(&rma, &before, "what is refused changes nothing");
                continue;
            };
            let told = RmaMessage { updated_at: minute(0), ..rma.message() };
            let known = RmaMessage { updated_at: minute(0), ..before.message() };
            prop_assert_eq!(change.event.is_some(), told != known, "{:?}", what);
            prop_assert_eq!(change.event.is_some(), rma.updated_at > before.updated_at);
            prop_assert_eq!(change.is_empty() , rma == before && change.discrepancies.is_empty() && change.units.is_empty());

            let settled = rma.clone();
            if let Ok(again) = happen(&mut rma, what, now) {
                prop_assert_eq!(again.event, None, "once is enough: {:?}", what);
                prop_assert!(again.is_empty() || is_note(what));
            }
            prop_assert_eq!(&rma, &settled);

            let json = serde_json::to_string(&rma).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Rma>(&json).unwrap(), &rma);
        }
    }

    #[test]
    fn what_was_accepted_and_comes_again_later_changes_nothing(
        start in any_return(),
        happenings in prop::collection::vec(happening(), 1..25),
        prefix in 0..25usize,
    ) {
        let mut rma = start;
        let mut accepted = Vec::new();
        for (what, minutes) in happenings.into_iter().zip(1..) {
            let Some(what) = once_only(what) else { continue };
            if happen(&mut rma, &what, minute(minutes)).is_ok() {
                accepted.push(what);
            }
        }
        let settled = rma.clone();
        for what in accepted.iter().take(prefix) {
            if let Ok(again) = happen(&mut rma, what, minute(99)) {
                prop_assert_eq!(again.event, None, "{:?}", what);
            }
            prop_assert_eq!(&rma, &settled, "{:?}", what);
        }
    }
}

/// The happening as far as a copy of it can be told from news: a second label and an undone
/// receipt cannot, which is why whoever hears of them remembers what it heard.
fn once_only(what: Happening) -> Option<Happening> {
    match what {
        Happening::Track(it) => {
            let units = None;
            Some(Happening::Track(CarrierReport { units, ..report(it.event, Some("1Z-1")) }))
        }
        what => (!is_undo(&what)).then_some(what),
    }
}
