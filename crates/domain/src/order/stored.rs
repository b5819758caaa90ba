//! The news that an order was stored, for whoever decides what can be returned.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Order;
use crate::access::MerchantId;
use crate::event::Event;

/// An order is new or says something new. Not sent for a stale or unchanged snapshot. Of two with
/// the same `updated_at` the one whose envelope has the higher `sequence` is the newer one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderStored {
    /// The merchant whose order it is.
    pub merchant: MerchantId,
    pub order: Order,
}

impl Event for OrderStored {
    const TYPE: &'static str = "order.stored.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.order.identifier)
    }
}
