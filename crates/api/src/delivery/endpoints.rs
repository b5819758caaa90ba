//! Endpoints with their state, backlog and health.

use chrono::{DateTime, Utc};
use domain::endpoint_state::EndpointState;
use domain::message_kind::MessageKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An endpoint that this service delivers to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndpointView {
    pub merchant: String,
    pub kind: MessageKind,
    pub state: EndpointState,
    /// Reason of a state other than `ok` and `not_tried`.
    pub reason: Option<String>,
    /// Time since which the endpoint fails. It is not known for a paused endpoint.
    pub since: Option<DateTime<Utc>>,
    /// How to send the waiting messages; only for an endpoint that is paused.
    pub remedy: Option<String>,
    /// Messages that wait, counted up to 10,000.
    pub waiting: i64,
    /// Time since which the oldest waiting message has been due; null if none is due.
    pub oldest_due_at: Option<DateTime<Utc>>,
    /// Messages that are being sent.
    pub in_flight: i64,
    /// Messages that may be sent at the same time.
    pub window: i32,
    /// The newest hour with attempts, and the hour before. Null without attempts in 30 days.
    pub recent: Option<RecentAttempts>,
    pub last_success: Option<LastSuccess>,
    pub last_failure: Option<LastFailure>,
    /// The last sample of a check that the endpoint accepted.
    pub last_accepted_sample: Option<LastSuccess>,
}

/// Attempts of the last two hours.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RecentAttempts {
    /// Start of the first of the hours that has attempts.
    pub from: DateTime<Utc>,
    pub attempts: i64,
    /// Part of the attempts that delivered their message, from 0 to 1.
    pub success_rate: f64,
    /// Duration in milliseconds that 95 % of the attempts did not exceed.
    pub p95_ms: i64,
}

/// The last attempt that delivered a message, to the second.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LastSuccess {
    pub at: DateTime<Utc>,
    /// HTTP status code.
    pub status: Option<i32>,
}

/// The last attempt that failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LastFailure {
    pub at: DateTime<Utc>,
    /// HTTP status code; null without a response.
    pub status: Option<i32>,
    /// For example `timed_out`.
    pub outcome: Option<String>,
}

/// A page of endpoints, by merchant and kind.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EndpointPage {
    pub endpoints: Vec<EndpointView>,
    /// Delays between the attempts of a message. Each differs by up to 10 %.
    pub retry_delays_seconds: Vec<u64>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The endpoints that need attention, and the oldest due delivery.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WorstEndpoints {
    /// Failing endpoints, then those of whose recent attempts more than 1 % failed.
    pub endpoints: Vec<EndpointView>,
    /// Null if no delivery is due. Deliveries to paused endpoints do not count.
    pub oldest_due: Option<OldestDueView>,
}

/// The delivery that has been due for the longest time.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OldestDueView {
    pub merchant: String,
    pub kind: String,
    pub due_at: DateTime<Utc>,
}
