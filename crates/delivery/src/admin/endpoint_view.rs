//! An endpoint with its state, backlog and health, as the API shows it.

use api::delivery::{EndpointView, LastFailure, LastSuccess, RecentAttempts};
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::endpoint_state::EndpointState;
use domain::message_kind::MessageKind;

use crate::histogram::Histogram;
use crate::store::{EndpointBucket, EndpointDetails, EndpointHealth};

pub(super) fn new_view(
    merchant: &MerchantId,
    kind: MessageKind,
    state: EndpointState,
    since: Option<DateTime<Utc>>,
) -> EndpointView {
    let (reason, remedy) = match state {
        EndpointState::Ok | EndpointState::NotTried => (None, None),
        EndpointState::Failing => (Some("the last attempt failed"), None),
        EndpointState::Paused => {
            let resume = format!("`backhaul endpoint resume {merchant} {kind}`");
            (Some("the endpoint is paused"), Some(resume))
        }
    };
    EndpointView {
        merchant: merchant.to_string(),
        kind,
        state,
        reason: reason.map(str::to_owned),
        since,
        remedy,
        waiting: 0,
        oldest_due_at: None,
        in_flight: 0,
        window: 0,
        recent: None,
        last_success: None,
        last_failure: None,
        last_accepted_sample: None,
    }
}

/// Adds backlog and health. `windows` are the initial and the maximum size of a window.
pub(super) fn complete(view: &mut EndpointView, details: &EndpointDetails, windows: (i32, i32)) {
    view.waiting = details.waiting;
    view.oldest_due_at = details.oldest_due_at;
    view.in_flight = details.in_flight;
    view.window = details.window_size.unwrap_or(windows.0).min(windows.1);
    let health = &details.health;
    view.last_success =
        health.last_success_at.map(|at| LastSuccess { at, status: health.last_success_status });
    view.last_failure = health.last_failure_at.map(|at| LastFailure {
        at,
        status: health.last_failure_status,
        outcome: health.last_failure_outcome.clone(),
    });
    view.last_accepted_sample =
        details.sample_at.map(|at| LastSuccess { at, status: details.sample_status });
    if view.state == EndpointState::Failing {
        view.reason = Some(failure(health));
    }
}

/// Adds the attempts of the endpoint among `buckets`.
pub(super) fn add_recent(view: &mut EndpointView, buckets: &[EndpointBucket]) {
    let own = || {
        let is_own = |bucket: &&EndpointBucket| {
            bucket.merchant == view.merchant && bucket.kind == view.kind.name()
        };
        buckets.iter().filter(is_own).map(|bucket| &bucket.count)
    };
    let mut histogram = Histogram::default();
    for count in own() {
        histogram.add(count.bucket, count.attempts, count.delivered);
    }
    let from = own().map(|count| count.hour).min();
    let rates = histogram.success_rate().zip(histogram.percentile_ms(95));
    view.recent = from.zip(rates).map(|(from, (success_rate, p95_ms))| RecentAttempts {
        from,
        attempts: histogram.attempts,
        success_rate,
        p95_ms,
    });
}

/// The last failure in words.
fn failure(health: &EndpointHealth) -> String {
    match (health.last_failure_status, &health.last_failure_outcome) {
        (Some(status), _) => format!("the endpoint responded with {status}"),
        (None, Some(outcome)) => format!("the last attempt failed: {}", outcome.replace('_', " ")),
        (None, None) => "the last attempt failed".to_owned(),
    }
}
