//! Runs one attempt: resolves the endpoint, sends the message, decides what follows.

use std::time::Duration;

use bytes::Bytes;
use domain::merchant::Interface;
use platform::{Timestamp, chain, telemetry};
use tracing::Instrument as _;

use crate::attempt::{Attempt, LoggedHeaders, ResponseBody};
use crate::engine::Engine;
use crate::outcome::{Jitter, Outcome, Signal, decide};
use crate::queue_message::QueueMessage;
use crate::settlement::Settlement;

/// Runs the attempt. If its trace is sampled, the attempt is a span, and the merchant receives the
/// `traceparent` of that span.
pub(super) async fn run_attempt(engine: &Engine, mut message: QueueMessage) -> Settlement {
    let parent = message.content.traceparent.take();
    let is_sampled = parent.as_deref().is_some_and(|parent| parent.ends_with("-01"));
    if !is_sampled {
        message.content.traceparent = parent;
        return send(engine, message).await;
    }
    let span = tracing::info_span!(
        "deliver",
        otel.kind = "client",
        merchant = message.content.merchant,
        kind = message.content.kind.name(),
        delivery.id = %message.id,
        attempt = message.attempt_number,
        outcome = tracing::field::Empty,
    );
    telemetry::set_parent(&span, parent.as_deref());
    message.content.traceparent = span.in_scope(telemetry::traceparent).or(parent);
    let settlement = send(engine, message).instrument(span.clone()).await;
    span.record("outcome", settlement.attempt.outcome.name());
    settlement
}

async fn send(engine: &Engine, message: QueueMessage) -> Settlement {
    let now = engine.clock.now();
    let content = &message.content;
    let interface = Interface::Message(message.content.kind);
    let (mut unauthorized, mut attempt) =
        match engine.endpoints.find(&content.merchant, interface, now) {
            Ok(resolved) => {
                let mut client = engine.endpoint_client.clone();
                let lease_left = (message.leased_until - now).to_std().unwrap_or_default();
                client.timeout = timeout(resolved.timeout, lease_left, client.timeout);
                let (unauthorized, attempt) =
                    client.deliver(content, &resolved.endpoint, now, Jitter::draw()).await;
                (unauthorized, attempt)
            }
            Err(error) => (None, unsendable(chain(&error), now)),
        };
    attempt.outcome = attempt.outcome.for_kind(content.kind, &attempt.response);
    let number = u32::try_from(message.attempt_number).unwrap_or(u32::MAX);
    let ended_at = engine.clock.now();
    let decision = decide(&engine.schedule, &attempt.outcome, number, ended_at, Jitter::draw());
    let response = match content.response_body {
        ResponseBody::Required => attempt.response.clone(),
        ResponseBody::Ignored => Bytes::new(),
    };
    // Only the log is kept until the attempt is settled.
    for attempt in unauthorized.iter_mut().chain([&mut attempt]) {
        attempt.response = Bytes::new();
    }
    if response.is_empty() {
        attempt.response_memory = None;
    }
    Settlement { message, unauthorized, attempt, decision, response }
}

/// Limits the timeout that a merchant set. An attempt may make two requests, and both must end
/// before the lease does; the default timeout is granted in any case.
fn timeout(own: Option<Duration>, lease_left: Duration, default: Duration) -> Duration {
    own.map_or(default, |own| own.min((lease_left / 2).max(default)))
}

/// A message without a usable endpoint fails like one whose endpoint is unreachable.
fn unsendable(why: String, now: Timestamp) -> Attempt {
    Attempt {
        outcome: Outcome::Unreachable(why),
        signal: Signal::Hold,
        started_at: now,
        latency: Duration::ZERO,
        response: Bytes::new(),
        response_memory: None,
        response_log: String::new(),
        headers: LoggedHeaders::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: Option<u64>, lease_left: u64, expected: u64) {
        let (own, lease_left) = (own.map(Duration::from_secs), Duration::from_secs(lease_left));
        let default = Duration::from_secs(20);
        assert_eq!(timeout(own, lease_left, default), Duration::from_secs(expected));
    }

    #[test]
    fn a_merchants_timeout_is_limited_by_the_lease() {
        check(None, 300, 20);
        check(Some(5), 300, 5);
        check(Some(120), 300, 120);
        check(Some(120), 100, 50);
        check(Some(120), 10, 20);
        check(Some(5), 0, 5);
        check(None, 0, 20);
    }
}
