//! Deliveries and their attempts.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;
use uuid::Uuid;

/// State of a delivery.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// Waiting, or being sent.
    Pending,
    Delivered,
    /// Given up, and in the dead-letter queue.
    Dead,
}

impl State {
    /// The name in the API and in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Reason why a pending delivery waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitingReason {
    /// The delivery does not wait: it is being sent.
    Sending,
    /// The endpoint is paused.
    EndpointPaused,
    /// An earlier delivery of its ordering key is not settled.
    BehindAnother,
    /// The time of the next attempt has not come.
    NextAttempt,
    /// The endpoint fails, and is probed again later.
    EndpointFailing,
    /// As many messages of the endpoint are in flight as its window allows.
    WindowFull,
    /// The delivery is due and is sent next.
    Due,
}

/// Reason why a pending delivery waits, in a word and in a sentence.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    pub reason: WaitingReason,
    /// The reason in words, with its time.
    #[schema(example = "the endpoint fails and is probed again at 2026-11-16T09:30:30Z")]
    pub detail: String,
}

/// A delivery.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DeliveryView {
    /// The merchant sees this as `webhook-id`.
    pub id: Uuid,
    pub merchant: String,
    pub kind: String,
    pub event: String,
    pub ordering_key: Option<String>,
    pub sequence: i64,
    pub state: State,
    pub created_at: DateTime<Utc>,
    /// Earliest time of the next attempt. Null while the delivery is being sent, waits behind another
    /// of its ordering key, or is settled.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Reason why the delivery waits; null once it is settled.
    pub waiting: Option<Waiting>,
    /// Attempts since creation or the last replay.
    pub attempt_count: Option<i32>,
    pub last_outcome: Option<String>,
    pub last_status: Option<i32>,
    pub last_error: Option<String>,
    pub last_attempt_at: Option<DateTime<Utc>>,
}

/// A page of deliveries.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeliveryPage {
    pub deliveries: Vec<DeliveryView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A header of a request or response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct HeaderView {
    pub name: String,
    /// The value, or `********` for a secret.
    pub value: String,
}

/// A request to the merchant, or an attempt that failed before the request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    /// 0 for the first delivery, 1 for the first replay, and so on.
    pub replay_number: i32,
    pub number: i32,
    pub started_at: DateTime<Utc>,
    pub latency_ms: i32,
    pub outcome: String,
    /// HTTP status code of the response.
    pub status: Option<i32>,
    pub detail: String,
    /// Headers of the request as sent, by name. Empty if the attempt failed before the request.
    pub request_headers: Vec<HeaderView>,
    /// Headers of the response, up to 2 KiB. Empty without a response.
    pub response_headers: Vec<HeaderView>,
    /// First bytes of the response body.
    pub response_body: String,
}

/// A delivery with its message body and its attempts.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDetails {
    #[serde(flatten)]
    pub delivery: DeliveryView,
    /// The message body as sent to the merchant.
    pub body: String,
    /// The newest 100 attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// Attempts after which a delivery is dead. A replay starts again.
    pub max_attempts: u32,
}
