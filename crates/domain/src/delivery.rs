//! The outcomes of deliveries, and the event that a message could not be delivered.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    access::MerchantId, event::Event, merchant::SupportContact, message_kind::MessageKind,
};

/// The outcomes of an attempt, as the attempt log, metrics, reports and filters name them.
pub const OUTCOMES: [&str; 12] = [
    "delivered",
    "unauthorized",
    "rejected",
    "redirected",
    "already_exists",
    "label_refused",
    "timed_out",
    "unreachable",
    "tls_failed",
    "address_refused",
    "response_too_large",
    "token_refused",
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
    /// The HTTP status code of the last attempt, if the endpoint responded.
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
