//! The news of what became of an exchange order.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::MerchantId;
use crate::event::Event;
use crate::returns::UnitId;

/// The merchant accepted the exchange order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangePlaced {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// What the merchant calls the new order, or what we call it if the merchant did not say.
    pub exchange_order_identifier: String,
    /// The returned units that the order replaces.
    pub units: Vec<UnitId>,
    pub placed_at: DateTime<Utc>,
}

/// Units are not exchanged, for good or for the time being.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeFailed {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// The returned units concerned.
    pub units: Vec<UnitId>,
    pub cause: FailureCause,
    /// For people.
    pub detail: String,
    pub failed_at: DateTime<Utc>,
}

/// Why, and so what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The chosen variant is gone: the units are refunded instead. Final.
    OutOfStock,
    /// An exchange order was placed for this order before: the units are refunded instead. Final.
    AlreadyExchanged,
    /// The merchant did not take the order; the units wait until an operator replays it, and
    /// [`ExchangePlaced`] follows then, or ends it.
    Undeliverable,
    /// The merchant did not take the order and an operator ended it: the units are refunded
    /// instead. Final.
    Abandoned,
}

impl FailureCause {
    /// Whether nothing was ordered, so that another return of the order may have an exchange.
    pub fn allows_another_exchange(self) -> bool {
        self == Self::OutOfStock
    }
}

impl Event for ExchangePlaced {
    const TYPE: &'static str = "exchange.placed.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.original_order_id)
    }
}

impl Event for ExchangeFailed {
    const TYPE: &'static str = "exchange.failed.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.original_order_id)
    }
}
