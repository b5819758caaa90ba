use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

use super::{
    Attempt, BadSchedule, Jitter, Outcome, Schedule, Signal, Step, TokenRefresh, decide,
    parse_retry_after,
};
use crate::guard::Refused;

fn now() -> DateTime<Utc> {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn attempt(number: u32) -> Attempt {
    Attempt { number, renewal: TokenRefresh::Spent, now: now(), roll: Jitter::MIDDLE }
}

fn retry_in(seconds: i64) -> Step {
    Step::Retry { at: now() + TimeDelta::seconds(seconds) }
}

fn status(status: u16) -> Outcome {
    Outcome::of_status(status, None, now())
}

fn status_with(status: u16, retry_after: &str) -> Outcome {
    Outcome::of_status(status, Some(retry_after), now())
}

#[track_caller]
fn check(outcome: &Outcome, number: u32, want: Step) {
    assert_eq!(decide(&Schedule::default(), outcome, attempt(number)), want, "{outcome:?}");
}

#[test]
fn every_success_status_is_delivered_at_any_attempt() {
    for code in 200..=299 {
        assert_eq!(status(code), Outcome::Delivered { status: code });
        for number in [1, 2, 6, 7] {
            check(&status(code), number, Step::Delivered);
        }
    }
}

#[test]
fn a_detail_has_an_end_whatever_a_merchant_sends() {
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
        Outcome::AddressRefused(Refused::UserInfo),
        Outcome::AnswerTooLarge { status: 200 },
        Outcome::TokenRefused("invalid_client".into()),
    ];
    failures.extend((300..=599).filter(|code| ![401, 410].contains(code)).map(status));
    failures.extend([100, 199, 600, 999].map(status));
    for failure in &failures {
        for (number, seconds) in [(1, 10), (2, 40), (3, 160), (4, 640), (5, 2560)] {
            check(failure, number, retry_in(seconds));
        }
        check(failure, 6, Step::Dead);
        check(failure, 7, Step::Dead);
    }
}

#[test]
fn gone_is_dead_at_once_and_pauses_the_endpoint() {
    assert_eq!(status(410), Outcome::Gone);
    for number in 1..=6 {
        check(&Outcome::Gone, number, Step::DeadAndPause);
    }
}

#[test]
fn a_401_renews_the_token_once_and_then_counts() {
    let schedule = Schedule::default();
    for number in 1..=6 {
        let possible = Attempt { renewal: TokenRefresh::Possible, ..attempt(number) };
        assert_eq!(decide(&schedule, &status(401), possible), Step::RefreshToken);
    }
    check(&status(401), 1, retry_in(10));
    check(&status(401), 5, retry_in(2560));
    check(&status(401), 6, Step::Dead);
    // Only a 401 is answered that way.
    let possible = Attempt { renewal: TokenRefresh::Possible, ..attempt(1) };
    assert_eq!(decide(&schedule, &status(403), possible), retry_in(10));
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
    // Other failures carry it too, and it never gives a dead message another try.
    check(&status_with(422, "60"), 1, retry_in(60));
    check(&status_with(503, "60"), 6, Step::Dead);
}

#[test]
fn an_unreadable_retry_after_is_no_retry_after() {
    for value in ["", " ", "soon", "-5", "1.5", "10 s", "+10", "2026-03-01T12:10:00Z"] {
        assert_eq!(parse_retry_after(value, now()), None, "{value:?}");
    }
    assert_eq!(parse_retry_after(" 7 ", now()), Some(now() + TimeDelta::seconds(7)));
}

#[test]
fn a_schedule_that_makes_no_sense_is_refused() {
    let seconds = Duration::from_secs;
    assert_eq!(Schedule::new(seconds(10), 4, 5), Ok(Schedule::default()));
    assert_eq!(Schedule::new(Duration::ZERO, 4, 5), Err(BadSchedule::NoBase));
    assert_eq!(Schedule::new(seconds(10), 0, 5), Err(BadSchedule::NoFactor));
    assert_eq!(Schedule::new(seconds(10), 4, 20), Err(BadSchedule::TooLong));
    assert_eq!(Schedule::new(seconds(10), 4, u32::MAX), Err(BadSchedule::TooLong));
    let none = Schedule::new(seconds(10), 4, 0).unwrap();
    assert_eq!(decide(&none, &Outcome::TimedOut, attempt(1)), Step::Dead);
}

#[test]
fn a_window_learns_from_sickness_and_not_from_one_bad_message() {
    for (outcome, want) in [
        (status(200), Signal::Grow),
        (status(204), Signal::Grow),
        (status(400), Signal::Hold),
        (status(409), Signal::Hold),
        (status(422), Signal::Hold),
        (Outcome::AnswerTooLarge { status: 200 }, Signal::Hold),
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
        (Outcome::AddressRefused(Refused::NoHost), Signal::Shrink),
        (Outcome::TokenRefused(String::new()), Signal::Shrink),
    ] {
        assert_eq!(outcome.signal(), want, "{outcome:?}");
    }
}

/// Schedules, and how often each retries.
fn schedules() -> impl Strategy<Value = (Schedule, u32)> {
    (1..=60_u64, 1..=6_u32, 0..=8_u32).prop_filter_map("too long", |(base, factor, retries)| {
        Some((Schedule::new(Duration::from_secs(base), factor, retries).ok()?, retries))
    })
}

proptest! {
    #[test]
    fn a_message_is_tried_exactly_once_more_than_it_is_retried(
        (schedule, retries) in schedules(), roll in any::<u32>(),
    ) {
        let mut number = 1;
        let attempt = |number| Attempt { roll: Jitter::new(roll), ..attempt(number) };
        while let Step::Retry { at } = decide(&schedule, &Outcome::TimedOut, attempt(number)) {
            prop_assert!(at > now());
            number += 1;
        }
        prop_assert_eq!(number, retries + 1);
    }

    #[test]
    fn a_delay_is_within_ten_percent_of_the_plain_one(
        (schedule, _) in schedules(), number in 1..=8_u32, roll in any::<u32>(),
    ) {
        let at = |roll| schedule.delay_after(number, roll);
        if let (Some(low), Some(plain), Some(high)) =
            (at(Jitter::LOWEST), at(Jitter::MIDDLE), at(Jitter::HIGHEST))
        {
            prop_assert_eq!(low, plain * 9 / 10);
            prop_assert_eq!(high, plain * 11 / 10);
            let delay = at(Jitter::new(roll)).unwrap();
            prop_assert!(low <= delay && delay <= high);
        }
    }

    #[test]
    fn delays_grow_when_the_factor_outgrows_the_jitter(
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
    fn a_retry_after_never_brings_a_retry_forward_nor_beyond_an_hour(
        number in 1..=5_u32, roll in any::<u32>(), seconds in 0..=200_000_i64,
    ) {
        let attempt = Attempt { roll: Jitter::new(roll), ..attempt(number) };
        let asked = Outcome::of_status(503, Some(&seconds.to_string()), now());
        let plain = decide(&Schedule::default(), &status(503), attempt);
        let asked = decide(&Schedule::default(), &asked, attempt);
        if let (Step::Retry { at: plain }, Step::Retry { at: asked }) = (plain, asked) {
            prop_assert!(asked >= plain);
            prop_assert!(asked <= plain.max(now() + TimeDelta::hours(1)));
            prop_assert!(asked >= now() + TimeDelta::seconds(seconds.min(3600)));
        } else {
            prop_assert!(false, "not retried");
        }
    }
}
