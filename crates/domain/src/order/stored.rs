//! The events that an order was stored.

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

impl AsRef<OrderStored> for OrderStored {
    fn as_ref(&self) -> &OrderStored {
        self
    }
}

impl Event for OrderStored {
    const TYPE: &'static str = "order.stored.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.order.identifier)
    }
}

/// [`OrderStored`] of a message with many units: an import, or an order of a company. It has a queue of its own, so
/// that a shopper's order does not wait behind those of other merchants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct OrderStoredInBulk(pub OrderStored);

impl AsRef<OrderStored> for OrderStoredInBulk {
    fn as_ref(&self) -> &OrderStored {
        &self.0
    }
}

impl Event for OrderStoredInBulk {
    const TYPE: &'static str = "order.stored_in_bulk.v1";

    fn subject(&self) -> String {
        self.0.subject()
    }
}
