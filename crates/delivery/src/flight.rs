//! One attempt from the queue to its result: find the endpoint, try, and say what follows.

use bytes::Bytes;
use domain::merchant::Interface;
use platform::{Timestamp, chain, telemetry};
use tracing::Instrument as _;

use crate::attempt::{Attempted, Courier, Try};
use crate::engine::Engine;
use crate::job::Job;
use crate::ledger::{Settlement, Tried, Verdict};
use crate::outcome::{Attempt, Outcome, Renewal, Roll, Signal, Step, decide};
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
            let mut courier = engine.courier.clone();
            // A new token may make two requests of it, and both must end within the lease.
            let longest = engine.settings.lease / 2;
            courier.deadline = opened.timeout.unwrap_or(courier.deadline).min(longest);
            let flown =
                courier.attempt(&job.message, &opened.endpoint, number, now, Roll::draw()).await;
            (flown, opened.version)
        }
        Err(error) => (grounded(&engine.courier, chain(&error), number, now), 0),
    };
    let kept = engine.settings.answer_kept;
    Done {
        tag,
        answer: attempted.last.answer.clone(),
        settlement: settlement(&job, &attempted, version, kept),
        message: job.message,
    }
}

/// A message that has nowhere to go fails like one whose endpoint does not answer.
fn grounded(courier: &Courier, why: String, number: u32, now: Timestamp) -> Attempted {
    let outcome = Outcome::Unreachable(why);
    let facts = Attempt { number, renewal: Renewal::Spent, now, roll: Roll::draw() };
    let step = decide(&courier.schedule, &outcome, facts);
    let last = Try {
        outcome,
        signal: Signal::Hold,
        at: now,
        latency: std::time::Duration::ZERO,
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
        gone_at_version: (attempted.step == Step::DeadAndPause).then_some(version),
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
