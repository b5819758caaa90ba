//! The state of a delivery and what happens next, in a sentence.

use api::delivery::{AttemptView, DeliveryView, State, WaitingReason};
use pages::text::count;

use crate::Page;

/// The state of a delivery and what happens next. `max_attempts` is the length of the retry schedule.
pub(super) fn sentence(
    page: &Page,
    delivery: &DeliveryView,
    attempts: &[AttemptView],
    max_attempts: u32,
) -> String {
    let next = delivery.next_attempt_at.map(|at| page.moment(at).to_string());
    describe(delivery, attempts, max_attempts, next.as_deref())
}

fn describe(
    delivery: &DeliveryView,
    attempts: &[AttemptView],
    max_attempts: u32,
    next: Option<&str>,
) -> String {
    // Attempts before the last replay do not count.
    let replay = attempts.last().map_or(0, |last| last.replay_number);
    let current = attempts.iter().filter(|attempt| attempt.replay_number == replay).count();
    let reason = attempts.last().map(reason);
    let after = match replay {
        0 => String::new(),
        1 => " after a replay".to_owned(),
        replays => format!(" after the last of {replays} replays"),
    };
    match delivery.state {
        State::Delivered if current == 1 && replay == 0 => {
            "Delivered at the first attempt.".to_owned()
        }
        State::Delivered if replay == 0 => {
            format!("Delivered at attempt {current}; the others failed.")
        }
        State::Delivered => {
            let failed = attempts.iter().filter(|attempt| attempt.outcome != "delivered").count();
            format!("Delivered at {}{after}{}.", ordinal(current), earlier(failed))
        }
        State::Dead => {
            let reason = reason.unwrap_or_default();
            format!("Failed {}{after} and was given up, because {reason}.", tries(current))
        }
        State::Pending => pending(delivery, reason.as_deref(), max_attempts, next),
    }
}

fn tries(number: usize) -> String {
    count(number, "attempt", "attempts")
}

fn ordinal(attempt: usize) -> String {
    if attempt == 1 { "the first attempt".to_owned() } else { format!("attempt {attempt}") }
}

/// The failed attempts before a delivery, as the end of a sentence.
fn earlier(failed: usize) -> String {
    if failed == 0 { String::new() } else { format!("; {} failed before", tries(failed)) }
}

fn pending(
    delivery: &DeliveryView,
    reason: Option<&str>,
    max_attempts: u32,
    next: Option<&str>,
) -> String {
    let failed = delivery.attempt_count.unwrap_or(0);
    let next = next_step(delivery, next);
    let (0, None) = (failed, reason) else {
        let because = reason.map(|reason| format!(" because {reason}")).unwrap_or_default();
        return match (failed, max_attempts) {
            (0, _) => format!("Replayed; {next}."),
            (failed, all) if i64::from(failed) <= i64::from(all) => {
                format!("Failed {failed} of {all} attempts; {next}{because}.")
            }
            (failed, _) => {
                format!("Failed {}; {next}{because}.", count(failed, "attempt", "attempts"))
            }
        };
    };
    format!("Not attempted yet; {next}.")
}

/// The next event of a pending delivery.
fn next_step(delivery: &DeliveryView, next: Option<&str>) -> String {
    let waiting = delivery.waiting.as_ref();
    let text = match waiting.map(|waiting| waiting.reason) {
        Some(WaitingReason::Sending) => "it is being sent now",
        Some(WaitingReason::EndpointPaused) => "it waits, because the endpoint is paused",
        Some(WaitingReason::BehindAnother) => "it waits for an earlier message of its ordering key",
        Some(WaitingReason::WindowFull) => {
            "it waits until the endpoint has responded to other messages"
        }
        Some(WaitingReason::Due) => "it is sent next",
        Some(WaitingReason::NextAttempt) if next.is_some() => "",
        _ => waiting.map_or("it is sent next", |waiting| waiting.detail.as_str()),
    };
    match (text, next) {
        ("", Some(next)) => format!("next attempt {next}"),
        (text, _) => text.to_owned(),
    }
}

/// The reason why an attempt failed, as the end of a sentence.
fn reason(attempt: &AttemptView) -> String {
    let reason = match (attempt.outcome.as_str(), attempt.status) {
        ("mail_deferred" | "mail_refused", _) => {
            return format!("the mail server {}", attempt.detail);
        }
        ("response_too_large", _) => "the response of the endpoint was too large",
        (_, Some(status)) => return format!("the endpoint responded with {status}"),
        ("timed_out", _) => "the endpoint did not respond in time",
        ("unreachable", _) => "the endpoint was not reachable",
        ("tls_failed", _) => "the TLS connection to the endpoint failed",
        ("address_refused", _) => "the address of the endpoint is not allowed",
        ("token_refused", _) => "the merchant's token server issued no token",
        _ => return attempt.outcome.replace('_', " "),
    };
    reason.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn delivery(state: &str, attempt_count: Option<u32>, waiting: Option<&str>) -> DeliveryView {
        let waiting = waiting.map(|reason| json!({ "reason": reason, "detail": "the detail" }));
        let fields = json!({ "state": state, "attempt_count": attempt_count, "waiting": waiting });
        fixtures::delivery(&fields)
    }

    fn attempts(outcomes: &[(u32, &str, Option<u16>)]) -> Vec<AttemptView> {
        let attempt = |(replay_number, outcome, status): &(u32, &str, Option<u16>)| {
            serde_json::from_value(json!({
                "replay_number": replay_number, "number": 1, "started_at": "2026-11-16T08:00:00Z",
                "latency_ms": 9, "outcome": outcome, "status": status, "detail": "",
                "request_headers": [], "response_headers": [], "response_body": "",
            }))
            .unwrap()
        };
        outcomes.iter().map(attempt).collect()
    }

    #[test]
    fn a_pending_delivery_says_what_happens_next_and_why() {
        let failed = attempts(&[(0, "rejected", Some(503)); 3]);
        let text = |delivery, attempts: &[_], all| {
            describe(&delivery, attempts, all, Some("in 2 min 10 s"))
        };
        assert_eq!(
            text(delivery("pending", Some(3), Some("next_attempt")), &failed, 6),
            "Failed 3 of 6 attempts; next attempt in 2 min 10 s because the endpoint responded with 503."
        );
        assert_eq!(
            text(delivery("pending", Some(1), Some("endpoint_failing")), &failed, 0),
            "Failed 1 attempt; the detail because the endpoint responded with 503."
        );
        assert_eq!(
            text(delivery("pending", Some(0), Some("due")), &[], 6),
            "Not attempted yet; it is sent next."
        );
        assert_eq!(
            text(delivery("pending", Some(0), Some("sending")), &failed, 6),
            "Replayed; it is being sent now."
        );
    }

    #[test]
    fn a_settled_delivery_says_how_it_ended() {
        let text = |state, outcomes: &[_]| {
            describe(&delivery(state, None, None), &attempts(outcomes), 6, None)
        };
        let ok = (1, "delivered", Some(200));
        let first = (0, "delivered", Some(200));
        assert_eq!(text("delivered", &[first]), "Delivered at the first attempt.");
        let second = [(0, "timed_out", None), first];
        assert_eq!(text("delivered", &second), "Delivered at attempt 2; the others failed.");
        let dead = [(0, "rejected", Some(500)), (0, "timed_out", None)];
        assert_eq!(
            text("dead", &dead),
            "Failed 2 attempts and was given up, because the endpoint did not respond in time."
        );
        let replayed = [dead[0], dead[1], (1, "timed_out", None), ok];
        assert_eq!(
            text("delivered", &replayed),
            "Delivered at attempt 2 after a replay; 3 attempts failed before."
        );
        let mut six = vec![(0, "rejected", Some(503)); 6];
        six.push(ok);
        assert_eq!(
            text("delivered", &six),
            "Delivered at the first attempt after a replay; 6 attempts failed before."
        );
        assert_eq!(
            text("delivered", &[first, (2, "delivered", Some(200))]),
            "Delivered at the first attempt after the last of 2 replays."
        );
        assert_eq!(
            text("dead", &[dead[0], (1, "timed_out", None)]),
            "Failed 1 attempt after a replay and was given up, because the endpoint did not respond in \
             time."
        );
    }
}
