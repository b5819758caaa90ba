//! Every state and every event, written out.

use std::fmt::Debug;

use expect_test::expect;

use super::*;

fn written<S: ToString>(step: Transition<S>) -> String {
    match step {
        Transition::Applied(state) => state.to_string(),
        Transition::Late => "late".to_owned(),
        Transition::Refused(refusal) => format!("refused: {}", code(refusal)),
    }
}

/// A row for each state, a column for each event.
fn table<S, E: Copy + Debug>(
    states: &[(&str, S)],
    events: &[E],
    step: impl Fn(&S, E) -> String,
) -> String {
    let row = |name: &str, cells: Vec<String>| format!("{name} | {}\n", cells.join(" | "));
    let head = row("", events.iter().map(|event| format!("{event:?}")).collect());
    let rows = states
        .iter()
        .map(|(name, state)| row(name, events.iter().map(|event| step(state, *event)).collect()));
    std::iter::once(head).chain(rows).collect()
}

#[test]
fn a_return() {
    let states = RmaStatus::ALL.map(|status| (status.as_str(), status));
    let table = table(&states, &StatusEvent::ALL, |status, event| written(status.step(event)));
    expect![[r#"
         | SomeRefunded | AllRefunded | ReceivingClosed | Canceled
        CREATED | CREATED | REFUNDED | PARTIAL_REFUND | CANCELED
        PARTIAL_REFUND | PARTIAL_REFUND | REFUNDED | late | refused: receiving_closed
        REFUNDED | late | late | late | refused: refunded
        CANCELED | refused: canceled | refused: canceled | refused: canceled | late
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_parcel() {
    let states: Vec<_> = std::iter::once(("null", None))
        .chain(TrackingStatus::ALL.map(|status| (status.as_str(), Some(status))))
        .collect();
    let step = |method: ReturnMethod| {
        table(&states, &TrackingEvent::ALL, |status, event| {
            written(TrackingStatus::step(*status, event, method))
        })
    };
    assert_eq!(step(ReturnMethod::MailBack), step(ReturnMethod::ExpressReturns));
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
    .assert_eq(&step(ReturnMethod::MailBack));
    let kept = step(ReturnMethod::CustomerKeep);
    assert!(kept.lines().skip(1).all(|row| row.matches("refused: customer_keeps").count() == 7));
}

#[test]
fn a_unit_at_the_warehouse() {
    let states: Vec<_> = ReceivingStatus::ALL
        .iter()
        .flat_map(|status| [(*status, false), (*status, true)])
        // Nothing is missing for good before the end, and nothing waits after it.
        .filter(|state| {
            !matches!(
                state,
                (ReceivingStatus::NotReceived, false) | (ReceivingStatus::Pending, true)
            )
        })
        .map(|state| (if state.1 { "closed" } else { "open" }, state))
        .collect();
    let table = table(&states, &ReceivingEvent::ALL, |(status, closed), event| {
        format!("{status} -> {}", written(status.step(event, *closed)))
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
fn nothing_moves_backwards() {
    for event in TrackingEvent::ALL {
        for status in TrackingStatus::ALL {
            let step = TrackingStatus::step(Some(status), event, ReturnMethod::MailBack);
            if let Transition::Applied(next) = step {
                assert!(next > status, "{status} {event}");
            }
        }
    }
    for event in StatusEvent::ALL {
        for status in RmaStatus::ALL {
            if let Transition::Applied(next) = status.step(event) {
                assert!(next >= status, "{status} {event:?}");
            }
        }
    }
    for event in ReceivingEvent::ALL {
        for (status, closed) in ReceivingStatus::ALL.map(|status| (status, true)) {
            if let Transition::Applied(next) = status.step(event, closed) {
                assert!(next >= status, "{status} {event:?}");
            }
        }
    }
}

#[test]
fn every_word_reads_back() {
    #[track_caller]
    fn check<W>(words: &[W])
    where
        W: Copy + PartialEq + Debug + ToString + std::str::FromStr<Err = UnknownWord>,
        W: serde::Serialize,
    {
        for word in words {
            assert_eq!(word.to_string().parse(), Ok(*word));
            assert_eq!(serde_json::json!(word), serde_json::json!(word.to_string()));
        }
        assert!("".parse::<W>().is_err() && "Created".parse::<W>().is_err());
    }
    check(&RmaStatus::ALL);
    check(&TrackingStatus::ALL);
    check(&TrackingEvent::ALL);
    check(&ReceivingStatus::ALL);
    check(&RefundType::ALL);
    check(&ReturnMethod::ALL);
    check(&ServiceEvent::ALL);
    check(&IneligibleCode::ALL);
    check(&ExchangeStatus::ALL);
    let unknown = "LOST".parse::<RmaStatus>().unwrap_err();
    assert_eq!(unknown.to_string(), "`LOST` is no RmaStatus");
}
