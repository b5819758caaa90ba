//! The outcomes of deliveries, and the events about dead messages and endpoints.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    access::MerchantId,
    event::Event,
    merchant::{Interface, SupportContact},
    message_kind::MessageKind,
};

/// The outcomes of an attempt, as the attempt log, metrics, reports and filters name them.
pub const OUTCOMES: [&str; 13] = [
    "delivered",
    "unauthorized",
    "rejected",
    "redirected",
    "already_exists",
    "timed_out",
    "unreachable",
    "tls_failed",
    "address_refused",
    "response_too_large",
    "token_refused",
    "mail_deferred",
    "mail_refused",
];

/// All delivery attempts of a message failed. An operator can replay it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDead {
    pub delivery: Uuid,
    pub merchant: MerchantId,
    pub kind: MessageKind,
    /// The event type in the message, for example `rma.created`.
    pub event: String,
    /// The dead-letter queue of the message.
    pub queue: String,
    pub attempts: u32,
    /// The HTTP or SMTP status code of the last attempt, if the endpoint or the mail server responded.
    pub status: Option<u16>,
    pub outcome: String,
    pub detail: String,
    pub first_attempt_at: DateTime<Utc>,
    pub last_attempt_at: DateTime<Utc>,
    /// The contact of the merchant for delivery problems.
    pub support_contact: Option<SupportContact>,
}

impl Event for DeliveryDead {
    const TYPE: &'static str = "delivery.dead.v1";

    fn subject(&self) -> String {
        format!("delivery/{}", self.delivery)
    }
}

/// An endpoint has failed for some minutes, or accepts messages again after that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointHealthChanged {
    pub merchant: MerchantId,
    pub kind: MessageKind,
    /// The time since which the endpoint fails, or failed.
    pub failing_since: DateTime<Utc>,
    /// The time of the success that ended the failure; null while it goes on.
    pub recovered_at: Option<DateTime<Utc>>,
    /// The HTTP status code of the last failed attempt, if the endpoint responded.
    pub status: Option<u16>,
}

impl Event for EndpointHealthChanged {
    const TYPE: &'static str = "endpoint.health_changed.v1";

    fn subject(&self) -> String {
        format!("endpoint/{}/{}", self.merchant, self.kind)
    }
}

/// A person or client paused an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointPaused {
    pub merchant: MerchantId,
    #[schema(value_type = String, example = "rma")]
    pub interface: Interface,
    pub paused_at: DateTime<Utc>,
}

impl Event for EndpointPaused {
    const TYPE: &'static str = "endpoint.paused.v1";

    fn subject(&self) -> String {
        format!("endpoint/{}/{}", self.merchant, self.interface)
    }
}
