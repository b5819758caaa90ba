use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::delivery::OUTCOMES;
use domain::message_kind::MessageKind;
use proptest::prelude::*;
use strum::VariantNames as _;

use super::{Decision, Jitter, Outcome, Schedule, ScheduleError, Signal, parse_retry_after};
use crate::guard::GuardError;

fn now() -> DateTime<Utc> {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn decide(schedule: &Schedule, outcome: &Outcome, number: u32, jitter: Jitter) -> Decision {
    super::decide(schedule, outcome, number, now(), jitter)
}

fn retry_in(seconds: i64) -> Decision {
    Decision::RetryAt(now() + TimeDelta::seconds(seconds))
}

fn status(status: u16) -> Outcome {
    Outcome::from_status(status, None, now())
}

fn status_with(status: u16, retry_after: &str) -> Outcome {
    Outcome::from_status(status, Some(retry_after), now())
}

#[track_caller]
fn check(outcome: &Outcome, number: u32, expected: Decision) {
    let decision = decide(&Schedule::default(), outcome, number, Jitter::MIDDLE);
    assert_eq!(decision, expected, "{outcome:?}");
}

#[test]
fn every_success_status_is_delivered_at_any_attempt() {
    for code in 200..=299 {
        assert_eq!(status(code), Outcome::Delivered { status: code });
        for number in [1, 2, 6, 7] {
            check(&status(code), number, Decision::Delivered);
        }
    }
}

#[test]
fn the_names_of_outcomes_are_part_of_the_api() {
    assert_eq!(Outcome::VARIANTS, OUTCOMES);
    assert_eq!(Outcome::TlsFailed(String::new()).name(), "tls_failed");
    assert_eq!(status(422).name(), "rejected");
}

#[test]
fn a_detail_is_cut_at_500_bytes() {
    for length in [0, 400, 497, 498, 499, 500, 501, 100_000] {
        let why = "é".repeat(length);
        let detail = Outcome::TlsFailed(why.clone()).detail();
        assert!(detail.len() <= 500, "{length}: {}", detail.len());
        assert!(format!("TLS failed: {why}").starts_with(&detail), "{length}");
    }
}

#[test]
fn every_failure_is_retried_five_times_and_then_dead() {
    let mut failures = vec![
        Outcome::Unauthorized,
        Outcome::TimedOut,
        Outcome::Unreachable("connection refused".into()),
        Outcome::TlsFailed("certificate expired".into()),
        Outcome::AddressRefused(GuardError::UserInfo),
        Outcome::ResponseTooLarge { status: 200 },
        Outcome::TokenRefused("invalid_client".into()),
    ];
    failures.extend((300..=599).filter(|code| *code != 401).map(status));
    failures.extend([100, 199, 600, 999].map(status));
    failures.push(status(409).for_kind(MessageKind::ExchangeOrder, b""));
    failures.push(status(422).for_kind(MessageKind::LabelRequest, b"{}"));
    for failure in &failures {
        for (number, seconds) in [(1, 10), (2, 40), (3, 160), (4, 640), (5, 2560)] {
            check(failure, number, retry_in(seconds));
        }
        check(failure, 6, Decision::Dead);
        check(failure, 7, Decision::Dead);
    }
}

#[test]
fn a_conflict_of_an_exchange_order_has_a_name_of_its_own() {
    let conflict = status(409).for_kind(MessageKind::ExchangeOrder, b"");
    assert_eq!((conflict.name(), conflict.status()), ("already_exists", Some(409)));
    assert_eq!(status(409).for_kind(MessageKind::Rma, b"").name(), "rejected");
    assert_eq!(status(422).for_kind(MessageKind::ExchangeOrder, b"").name(), "rejected");
}

#[test]
fn a_provider_that_says_why_it_makes_no_label_is_not_asked_again() {
    let refused = r#"{"reason": "too_heavy", "detail": "over 30 kg"}"#;
    let outcome = status(422).for_kind(MessageKind::LabelRequest, refused.as_bytes());
    assert_eq!((outcome.name(), outcome.status()), ("label_refused", Some(422)));
    check(&outcome, 1, Decision::Delivered);
    assert_eq!(outcome.signal(), Signal::Hold);
    // Another status, another kind, or no reason is a failure like any other.
    for (code, kind, response) in [
        (400, MessageKind::LabelRequest, refused),
        (422, MessageKind::Rma, refused),
        (422, MessageKind::LabelRequest, r#"{"message": "the body is invalid"}"#),
        (422, MessageKind::LabelRequest, "<html>"),
    ] {
        assert_eq!(status(code).for_kind(kind, response.as_bytes()).name(), "rejected");
    }
}

#[test]
fn a_longer_retry_after_wins_up_to_an_hour() {
    check(&status_with(429, "5"), 1, retry_in(10));
    check(&status_with(429, "11"), 1, retry_in(11));
    check(&status_with(503, "120"), 1, retry_in(120));
    check(&status_with(503, "120"), 3, retry_in(160));
    check(&status_with(503, "3600"), 1, retry_in(3600));
    check(&status_with(503, "3601"), 1, retry_in(3600));
    check(&status_with(503, "99999999999999999999999"), 1, retry_in(3600));
    check(&status_with(503, "Sun, 01 Mar 2026 12:10:00 GMT"), 1, retry_in(600));
    check(&status_with(503, "Sunday, 01-Mar-26 12:10:00 GMT"), 1, retry_in(600));
    check(&status_with(503, "Sun Mar  1 12:10:00 2026"), 1, retry_in(600));
    check(&status_with(503, "Sun, 01 Mar 2026 11:00:00 GMT"), 1, retry_in(10));
    check(&status_with(503, "Mon, 01 Mar 2027 12:00:00 GMT"), 1, retry_in(3600));
    // Other statuses may have the header too. It never adds an attempt.
    check(&status_with(422, "60"), 1, retry_in(60));
    check(&status_with(503, "60"), 6, Decision::Dead);
}

#[test]
fn a_malformed_retry_after_is_ignored() {
    for value in ["", " ", "soon", "-5", "1.5", "10 s", "+10", "2026-03-01T12:10:00Z"] {
        assert_eq!(parse_retry_after(value, now()), None, "{value:?}");
    }
    assert_eq!(parse_retry_after(" 7 ", now()), Some(now() + TimeDelta::seconds(7)));
}

#[test]
fn an_invalid_schedule_is_rejected() {
    let seconds = Duration::from_secs;
    assert_eq!(Schedule::new(seconds(10), 4, 5), Ok(Schedule::default()));
    assert_eq!(Schedule::new(Duration::ZERO, 4, 5), Err(ScheduleError::ZeroBase));
    assert_eq!(Schedule::new(seconds(10), 0, 5), Err(ScheduleError::ZeroFactor));
    assert_eq!(Schedule::new(seconds(10), 4, 20), Err(ScheduleError::TooLong));
    assert_eq!(Schedule::new(seconds(10), 4, u32::MAX), Err(ScheduleError::TooLong));
    let none = Schedule::new(seconds(10), 4, 0).unwrap();
    assert_eq!(decide(&none, &Outcome::TimedOut, 1, Jitter::MIDDLE), Decision::Dead);
}

#[test]
fn a_rejected_message_does_not_shrink_the_window() {
    for (outcome, expected) in [
        (status(200), Signal::Grow),
        (status(204), Signal::Grow),
        (status(400), Signal::Hold),
        (status(409), Signal::Hold),
        (status(422), Signal::Hold),
        (Outcome::ResponseTooLarge { status: 200 }, Signal::Hold),
        (status(301), Signal::Shrink),
        (status(401), Signal::Shrink),
        (status(403), Signal::Shrink),
        (status(404), Signal::Shrink),
        (status(408), Signal::Shrink),
        (status(410), Signal::Shrink),
        (status(429), Signal::Shrink),
        (status(500), Signal::Shrink),
        (status(503), Signal::Shrink),
        (Outcome::TimedOut, Signal::Shrink),
        (Outcome::Unreachable(String::new()), Signal::Shrink),
        (Outcome::TlsFailed(String::new()), Signal::Shrink),
        (Outcome::AddressRefused(GuardError::NoHost), Signal::Shrink),
        (Outcome::TokenRefused(String::new()), Signal::Shrink),
    ] {
        assert_eq!(outcome.signal(), expected, "{outcome:?}");
    }
}

/// Valid schedules and their number of retries.
fn schedules() -> impl Strategy<Value = (Schedule, u32)> {
    (1..=60_u64, 1..=6_u32, 0..=8_u32).prop_filter_map("too long", |(base, factor, retries)| {
        Some((Schedule::new(Duration::from_secs(base), factor, retries).ok()?, retries))
    })
}

proptest! {
    #[test]
    fn a_message_is_attempted_once_and_then_once_per_retry(
        (schedule, retries) in schedules(), jitter in any::<u32>(),
    ) {
        let mut number = 1;
        let fail = |number| decide(&schedule, &Outcome::TimedOut, number, Jitter::new(jitter));
        while let Decision::RetryAt(at) = fail(number) {
            prop_assert!(at > now());
            number += 1;
        }
        prop_assert_eq!(number, retries + 1);
    }

    #[test]
    fn a_delay_is_within_ten_percent_of_the_exact_one(
        (schedule, _) in schedules(), number in 1..=8_u32, jitter in any::<u32>(),
    ) {
        let delay = |jitter| schedule.delay_after(number, jitter);
        if let (Some(low), Some(exact), Some(high)) =
            (delay(Jitter::LOWEST), delay(Jitter::MIDDLE), delay(Jitter::HIGHEST))
        {
            prop_assert_eq!(low, exact * 9 / 10);
            prop_assert_eq!(high, exact * 11 / 10);
            let delay = delay(Jitter::new(jitter)).unwrap();
            prop_assert!(low <= delay && delay <= high);
        }
    }

    #[test]
    fn delays_grow_if_the_factor_exceeds_the_jitter(
        (schedule, _) in schedules(), number in 1..=8_u32, first in any::<u32>(), second in any::<u32>(),
    ) {
        let earlier = schedule.delay_after(number, Jitter::new(first));
        let later = schedule.delay_after(number + 1, Jitter::new(second));
        if let (Some(earlier), Some(later)) = (earlier, later)
            && schedule.delay_after(2, Jitter::MIDDLE) > schedule.delay_after(1, Jitter::MIDDLE)
        {
            prop_assert!(earlier < later);
        }
    }

    #[test]
    fn a_retry_after_only_postpones_a_retry_and_by_an_hour_at_most(
        number in 1..=5_u32, jitter in any::<u32>(), seconds in 0..=200_000_i64,
    ) {
        let schedule = Schedule::default();
        let requested = Outcome::from_status(503, Some(&seconds.to_string()), now());
        let scheduled = decide(&schedule, &status(503), number, Jitter::new(jitter));
        let requested = decide(&schedule, &requested, number, Jitter::new(jitter));
        if let (Decision::RetryAt(scheduled), Decision::RetryAt(requested)) = (scheduled, requested) {
            prop_assert!(requested >= scheduled);
            prop_assert!(requested <= scheduled.max(now() + TimeDelta::hours(1)));
            prop_assert!(requested >= now() + TimeDelta::seconds(seconds.min(3600)));
        } else {
            prop_assert!(false, "not retried");
        }
    }
}
