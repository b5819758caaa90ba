//! Tables of every state and every event.

use std::fmt::Debug;

use expect_test::expect;
use strum::VariantArray;

use super::*;
use crate::merchant::ReviewDecision;

fn cell<S: ToString>(transition: Transition<S>) -> String {
    match transition {
        Transition::Applied(state) => state.to_string(),
        Transition::Late => "late".to_owned(),
        Transition::Refused(error) => format!("refused: {}", code(error)),
    }
}

/// A row for each state, a column for each event.
fn table<S, E: Copy + Debug>(
    states: &[(&str, S)],
    events: &[E],
    apply: impl Fn(&S, E) -> String,
) -> String {
    let row = |name: &str, cells: Vec<String>| format!("{name} | {}\n", cells.join(" | "));
    let head = row("", events.iter().map(|event| format!("{event:?}")).collect());
    let rows = states
        .iter()
        .map(|(name, state)| row(name, events.iter().map(|event| apply(state, *event)).collect()));
    std::iter::once(head).chain(rows).collect()
}

#[test]
fn the_status_of_a_return() {
    let states: Vec<_> = RmaStatus::ALL.iter().map(|status| (status.as_str(), *status)).collect();
    let table = table(&states, StatusEvent::VARIANTS, |status, event| cell(status.apply(event)));
    expect![[r#"
         | SomeRefunded | AllRefunded | ReceivingClosed | Canceled | Reopened | Approved | Declined
        REQUESTED | refused: in_review | refused: in_review | refused: in_review | CANCELED | refused: in_review | CREATED | DECLINED
        CREATED | CREATED | REFUNDED | PARTIAL_REFUND | CANCELED | CREATED | refused: not_in_review | refused: not_in_review
        PARTIAL_REFUND | PARTIAL_REFUND | REFUNDED | late | refused: receiving_closed | refused: receiving_closed | refused: not_in_review | refused: not_in_review
        REFUNDED | late | late | late | refused: refunded | refused: refunded | refused: not_in_review | refused: not_in_review
        CANCELED | refused: canceled | refused: canceled | refused: canceled | late | CREATED | refused: canceled | refused: canceled
        DECLINED | refused: declined | refused: declined | refused: declined | refused: declined | refused: declined | refused: declined | refused: declined
    "#]]
    .assert_eq(&table);
}

#[test]
fn the_tracking_status_of_a_parcel() {
    let names: Vec<_> = TrackingStatus::VARIANTS.iter().map(ToString::to_string).collect();
    let known =
        names.iter().map(String::as_str).zip(TrackingStatus::VARIANTS.iter().copied().map(Some));
    let states: Vec<_> = std::iter::once(("null", None)).chain(known).collect();
    let table_of = |method: ReturnMethod| {
        table(&states, TrackingEvent::ALL, |status, event| {
            cell(TrackingStatus::apply(*status, event, method))
        })
    };
    assert_eq!(table_of(ReturnMethod::MailBack), table_of(ReturnMethod::ExpressReturns));
    expect![[r#"
         | Label | NotDroppedOff | Accepted | InTransit | Failure | Delivered | Returned
        null | PRE_TRANSIT | NOT_DROPPED_OFF | ACCEPTED | TRANSIT | FAILURE | DELIVERED | RETURNED
        PRE_TRANSIT | late | NOT_DROPPED_OFF | ACCEPTED | TRANSIT | FAILURE | DELIVERED | RETURNED
        NOT_DROPPED_OFF | late | late | ACCEPTED | TRANSIT | FAILURE | DELIVERED | RETURNED
        ACCEPTED | late | late | late | TRANSIT | FAILURE | DELIVERED | RETURNED
        TRANSIT | late | late | late | late | FAILURE | DELIVERED | RETURNED
        FAILURE | late | late | late | late | late | DELIVERED | RETURNED
        DELIVERED | late | late | late | late | late | late | late
        RETURNED | late | late | late | late | late | late | late
    "#]]
    .assert_eq(&table_of(ReturnMethod::MailBack));
    let kept = table_of(ReturnMethod::CustomerKeep);
    assert!(kept.lines().skip(1).all(|row| row.matches("refused: customer_keeps").count() == 7));
}

#[test]
fn the_receiving_status_of_a_unit() {
    let states: Vec<_> = ReceivingStatus::VARIANTS
        .iter()
        .flat_map(|status| [(*status, false), (*status, true)])
        // A unit is not received only after closing, and pending only before.
        .filter(|state| {
            !matches!(
                state,
                (ReceivingStatus::NotReceived, false) | (ReceivingStatus::Pending, true)
            )
        })
        .map(|state| (if state.1 { "closed" } else { "open" }, state))
        .collect();
    let table = table(&states, ReceivingEvent::VARIANTS, |(status, closed), event| {
        format!("{status} -> {}", cell(status.apply(event, *closed)))
    });
    expect![[r#"
         | Received | Damaged | Short | Wrong | Undone | Closed
        open | PENDING -> RECEIVED | PENDING -> RECEIVED | PENDING -> PENDING | PENDING -> PENDING | PENDING -> refused: nothing_received | PENDING -> NOT_RECEIVED
        closed | NOT_RECEIVED -> RECEIVED | NOT_RECEIVED -> RECEIVED | NOT_RECEIVED -> late | NOT_RECEIVED -> NOT_RECEIVED | NOT_RECEIVED -> refused: receiving_closed | NOT_RECEIVED -> late
        open | RECEIVED -> late | RECEIVED -> RECEIVED | RECEIVED -> late | RECEIVED -> RECEIVED | RECEIVED -> PENDING | RECEIVED -> late
        closed | RECEIVED -> late | RECEIVED -> RECEIVED | RECEIVED -> late | RECEIVED -> RECEIVED | RECEIVED -> refused: receiving_closed | RECEIVED -> late
    "#]].assert_eq(&table);
}

#[test]
fn no_status_moves_backwards() {
    for event in TrackingEvent::ALL.iter().copied() {
        for status in TrackingStatus::VARIANTS.iter().copied() {
            let method = ReturnMethod::MailBack;
            if let Transition::Applied(next) = TrackingStatus::apply(Some(status), event, method) {
                assert!(next > status, "{status} {event}");
            }
        }
    }
    let forward = StatusEvent::VARIANTS.iter().filter(|event| **event != StatusEvent::Reopened);
    for event in forward.copied() {
        for status in RmaStatus::ALL.iter().copied() {
            if let Transition::Applied(next) = status.apply(event) {
                assert!(next >= status, "{status} {event:?}");
            }
        }
    }
    for event in ReceivingEvent::VARIANTS.iter().copied() {
        for status in ReceivingStatus::VARIANTS.iter().copied() {
            if let Transition::Applied(next) = status.apply(event, true) {
                assert!(next >= status, "{status} {event:?}");
            }
        }
    }
}

#[test]
fn every_enum_text_parses_back_and_equals_its_json() {
    #[track_caller]
    fn check<E>(variants: &[E])
    where
        E: Copy + PartialEq + Debug + ToString + serde::Serialize,
        E: std::str::FromStr<Err = strum::ParseError>,
    {
        for variant in variants {
            assert_eq!(variant.to_string().parse(), Ok(*variant));
            assert_eq!(serde_json::json!(variant), serde_json::json!(variant.to_string()));
        }
        assert!("".parse::<E>().is_err() && "Created".parse::<E>().is_err());
    }
    check(RmaStatus::VARIANTS);
    check(MessageStatus::VARIANTS);
    check(ReviewDecision::VARIANTS);
    check(TrackingStatus::VARIANTS);
    check(TrackingEvent::VARIANTS);
    check(ReceivingStatus::VARIANTS);
    check(RefundType::VARIANTS);
    check(ReturnMethod::VARIANTS);
    check(IneligibleCode::VARIANTS);
    check(ExchangeStatus::VARIANTS);
    check(GuaranteeState::VARIANTS);
    check(DeadlineKind::VARIANTS);
    assert_eq!("LOST".parse::<RmaStatus>(), Err(strum::ParseError::VariantNotFound));
}

#[test]
fn every_service_event_has_the_text_of_the_contract() {
    let texts: Vec<_> = ServiceEvent::VARIANTS.iter().map(|event| event.as_str()).collect();
    let expected = [
        "rma.created",
        "rma.tracking_updated",
        "rma.in_transit",
        "rma.dropped_off",
        "rma.received",
        "rma.partially_refunded",
        "rma.refunded",
        "rma.canceled",
        "rma.expired",
        "rma.exchange_placed",
        "rma.exchange_failed",
        "rma.exchange_unreturned",
        "rma.guarantee_waived",
    ];
    assert_eq!(texts, expected);
    assert!(ServiceEvent::VARIANTS.iter().all(|event| event.to_string() == event.as_str()));
}
