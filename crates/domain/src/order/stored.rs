//! The event that an order was stored.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::model::Order;
use crate::access::MerchantId;
use crate::event::Event;

/// An order was created or changed. Stale and unchanged snapshots cause no event. Two events with
/// the same `updated_at` are ordered by the `sequence` of their envelopes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderStored {
    pub merchant: MerchantId,
    pub order: Order,
    /// Whether an operator reset the order. Its `updated_at` is then earlier than that of the events before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub is_reset: bool,
}

impl Event for OrderStored {
    const TYPE: &'static str = "order.stored.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.order.identifier)
    }
}
