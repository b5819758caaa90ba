//! An endpoint with its state, backlog and health, as the API shows it.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::endpoint_state::EndpointState;
use domain::message_kind::MessageKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::latency::Histogram;
use crate::store::{EndpointBucket, EndpointDetails, EndpointHealth};

/// An endpoint that this service delivers to.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndpointView {
    pub(super) merchant: String,
    pub(super) kind: MessageKind,
    pub(super) state: EndpointState,
    /// Reason of a state other than `ok` and `not_tried`.
    reason: Option<String>,
    /// Time since which the endpoint fails. It is not known for a paused endpoint.
    since: Option<DateTime<Utc>>,
    /// How to send the waiting messages; only for an endpoint that is paused.
    remedy: Option<String>,
    /// Messages that wait, counted up to 10,000.
    waiting: i64,
    /// Time since which the oldest waiting message has been due; null if none is due.
    oldest_due_at: Option<DateTime<Utc>>,
    /// Messages that are being sent.
    in_flight: i64,
    /// Messages that may be sent at the same time.
    window: i32,
    /// The newest hour with attempts, and the hour before. Null without attempts in 30 days.
    recent: Option<RecentAttempts>,
    last_success: Option<LastSuccess>,
    last_failure: Option<LastFailure>,
    /// The last sample of a check that the endpoint accepted.
    last_accepted_sample: Option<LastSuccess>,
}

/// Attempts of the last two hours.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecentAttempts {
    /// Start of the first of the hours that has attempts.
    from: DateTime<Utc>,
    attempts: i64,
    /// Part of the attempts that delivered their message, from 0 to 1.
    success_rate: f64,
    /// Duration in milliseconds that 95 % of the attempts did not exceed.
    p95_ms: i64,
}

/// The last attempt that delivered a message, to the second.
#[derive(Serialize, ToSchema)]
pub(crate) struct LastSuccess {
    at: DateTime<Utc>,
    /// HTTP status code.
    status: Option<i32>,
}

/// The last attempt that failed.
#[derive(Serialize, ToSchema)]
pub(crate) struct LastFailure {
    at: DateTime<Utc>,
    /// HTTP status code; null without a response.
    status: Option<i32>,
    /// For example `timed_out`.
    outcome: Option<String>,
}

impl EndpointView {
    pub(super) fn new(
        merchant: &MerchantId,
        kind: MessageKind,
        state: EndpointState,
        since: Option<DateTime<Utc>>,
    ) -> Self {
        let (reason, remedy) = match state {
            EndpointState::Ok | EndpointState::NotTried => (None, None),
            EndpointState::Failing => (Some("the last attempt failed"), None),
            EndpointState::Paused => {
                let resume = format!("`backhaul endpoint resume {merchant} {kind}`");
                (Some("the endpoint is paused"), Some(resume))
            }
        };
        Self {
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
    pub(super) fn add_details(&mut self, details: &EndpointDetails, windows: (i32, i32)) {
        self.waiting = details.waiting;
        self.oldest_due_at = details.oldest_due_at;
        self.in_flight = details.in_flight;
        self.window = details.window_size.unwrap_or(windows.0).min(windows.1);
        let health = &details.health;
        self.last_success =
            health.last_success_at.map(|at| LastSuccess { at, status: health.last_success_status });
        self.last_failure = health.last_failure_at.map(|at| LastFailure {
            at,
            status: health.last_failure_status,
            outcome: health.last_failure_outcome.clone(),
        });
        self.last_accepted_sample =
            details.sample_at.map(|at| LastSuccess { at, status: details.sample_status });
        if self.state == EndpointState::Failing {
            self.reason = Some(failure(health));
        }
    }

    /// Adds the attempts of the endpoint among `buckets`.
    pub(super) fn add_recent(&mut self, buckets: &[EndpointBucket]) {
        let own = || {
            let is_own = |bucket: &&EndpointBucket| {
                bucket.merchant == self.merchant && bucket.kind == self.kind.name()
            };
            buckets.iter().filter(is_own).map(|bucket| &bucket.count)
        };
        let mut histogram = Histogram::default();
        for count in own() {
            histogram.add(count.bucket, count.attempts, count.delivered);
        }
        let from = own().map(|count| count.hour).min();
        let rates = histogram.success_rate().zip(histogram.percentile_ms(95));
        self.recent = from.zip(rates).map(|(from, (success_rate, p95_ms))| RecentAttempts {
            from,
            attempts: histogram.attempts,
            success_rate,
            p95_ms,
        });
    }
}

/// The last failure in words.
fn failure(health: &EndpointHealth) -> String {
    match (health.last_failure_status, &health.last_failure_outcome) {
        (Some(status), _) => format!("the endpoint responded with {status}"),
        (None, Some(outcome)) => format!("the last attempt failed: {}", outcome.replace('_', " ")),
        (None, None) => "the last attempt failed".to_owned(),
    }
}
