//! One attempt from the queue to its result: find the endpoint, try, and say what follows.

use std::time::Duration;

use bytes::Bytes;
use domain::merchant::Interface;
use platform::{Timestamp, chain, telemetry};
use tracing::Instrument as _;

use crate::attempt::{Attempted, EndpointClient, Try};
use crate::engine::Engine;
use crate::job::Job;
use crate::ledger::{Settlement, Tried, Verdict};
use crate::outcome::{Attempt, Jitter, Outcome, Signal, Step, TokenRefresh, decide};
use crate::settler::{Done, Tag};

/// Makes the attempt. In a trace that somebody keeps it is a span of its own, and the merchant is told
/// of that one.
pub(crate) async fn fly(engine: &Engine, mut job: Job, tag: Tag) -> Done {
    let parent = job.message.traceparent.take();
    let kept = parent.as_deref().is_some_and(|parent| parent.ends_with("-01"));
    if !kept {
        job.message.traceparent = parent;
        return attempt(engine, job, tag).await;
    }
    let span = tracing::info_span!(
        "deliver",
        otel.kind = "client",
        merchant = job.message.merchant,
        kind = job.message.kind.name(),
        delivery.id = %job.id,
        attempt = job.number,
        outcome = tracing::field::Empty,
    );
    telemetry::adopt(&span, parent.as_deref());
    job.message.traceparent = span.in_scope(telemetry::traceparent).or(parent);
    let done = attempt(engine, job, tag).instrument(span.clone()).await;
    if let Some(last) = done.settlement.tries.last() {
        span.record("outcome", last.outcome);
    }
    done
}

async fn attempt(engine: &Engine, job: Job, tag: Tag) -> Done {
    let now = engine.clock.now();
    let number = u32::try_from(job.number).unwrap_or(u32::MAX);
    let interface = Interface::Message(job.message.kind);
    let (attempted, version) = match engine.endpoints.find(&job.message.merchant, interface, now) {
        Ok(opened) => {
            let mut endpoint_client = engine.endpoint_client.clone();
            let left = (job.lease_until - now).to_std().unwrap_or_default();
            endpoint_client.deadline = deadline(opened.timeout, left, endpoint_client.deadline);
            let flown = endpoint_client
                .attempt(&job.message, &opened.endpoint, number, now, Jitter::draw())
                .await;
            (flown, opened.version)
        }
        Err(error) => (unsendable(&engine.endpoint_client, chain(&error), number, now), 0),
    };
    let kept = engine.settings.response_log_bytes;
    Done {
        tag,
        answer: attempted.last.answer.clone(),
        settlement: settlement(&job, &attempted, version, kept),
        message: job.message,
    }
}

/// How long a request may take. A new token may make two of an attempt, and both must end within what
/// is left of the lease; a message that waited long still has the usual time.
fn deadline(own: Option<Duration>, left: Duration, usual: Duration) -> Duration {
    own.map_or(usual, |own| own.min((left / 2).max(usual)))
}

/// A message that has nowhere to go fails like one whose endpoint does not answer.
fn unsendable(
    endpoint_client: &EndpointClient,
    why: String,
    number: u32,
    now: Timestamp,
) -> Attempted {
    let outcome = Outcome::Unreachable(why);
    let facts = Attempt { number, renewal: TokenRefresh::Spent, now, roll: Jitter::draw() };
    let step = decide(&endpoint_client.schedule, &outcome, facts);
    let last = Try {
        outcome,
        signal: Signal::Hold,
        at: now,
        latency: Duration::ZERO,
        answer: Bytes::new(),
    };
    Attempted { refused: None, last, step }
}

fn settlement(job: &Job, attempted: &Attempted, version: i64, kept: usize) -> Settlement {
    let verdict = match attempted.step {
        Step::Delivered => Verdict::Delivered,
        Step::Retry { at } => Verdict::Retry(at),
        // A token is asked for within the attempt; it never ends with wanting one.
        Step::Dead | Step::DeadAndPause | Step::RefreshToken => Verdict::Dead,
    };
    let tries = attempted.refused.iter().chain([&attempted.last]);
    Settlement {
        id: job.id,
        merchant: job.message.merchant.clone(),
        kind: job.message.kind,
        round: job.round,
        number: job.number,
        verdict,
        signal: attempted.last.signal,
        tries: tries.map(|tried| logged(tried, kept)).collect(),
        disabled_at_version: (attempted.step == Step::DeadAndPause).then_some(version),
    }
}

fn logged(tried: &Try, kept: usize) -> Tried {
    let start = tried.answer.get(..kept).unwrap_or(&tried.answer);
    Tried {
        at: tried.at,
        latency: tried.latency,
        outcome: tried.outcome.name(),
        status: tried.outcome.status(),
        detail: printable(&tried.outcome.detail()),
        answer: printable(&String::from_utf8_lossy(start)),
    }
}

/// Text that PostgreSQL takes.
fn printable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: Option<u64>, left: u64, wanted: u64) {
        let (own, left) = (own.map(Duration::from_secs), Duration::from_secs(left));
        let usual = Duration::from_secs(20);
        assert_eq!(deadline(own, left, usual), Duration::from_secs(wanted));
    }

    #[test]
    fn an_endpoints_own_deadline_ends_within_what_is_left_of_the_lease() {
        check(None, 300, 20);
        check(Some(5), 300, 5);
        check(Some(120), 300, 120);
        check(Some(120), 100, 50);
        check(Some(120), 10, 20);
        check(Some(5), 0, 5);
        check(None, 0, 20);
    }
}
