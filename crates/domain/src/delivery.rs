//! What becomes of messages to merchants, as other services and operators hear of it.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    access::MerchantId,
    event::Event,
    merchant::SupportContact,
    message_kind::{MessageKind, message_kind_schema},
};

/// A message was tried as often as it may be and not accepted; it waits for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryDead {
    pub delivery: Uuid,
    pub merchant: MerchantId,
    #[schema(schema_with = message_kind_schema)]
    pub kind: MessageKind,
    /// What the message tells the merchant, for example `rma.created`.
    pub event: String,
    /// The queue in which the message lies.
    pub queue: String,
    pub attempts: u32,
    /// The last status code, when the endpoint answered.
    pub status: Option<u16>,
    pub outcome: String,
    pub detail: String,
    pub first_attempt_at: DateTime<Utc>,
    pub last_attempt_at: DateTime<Utc>,
    /// Whom to tell at the merchant.
    pub support_contact: Option<SupportContact>,
}

impl Event for DeliveryDead {
    const TYPE: &'static str = "delivery.dead.v1";

    fn subject(&self) -> String {
        format!("delivery/{}", self.delivery)
    }
}
