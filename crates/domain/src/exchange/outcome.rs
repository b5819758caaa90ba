//! The events that report the outcome of an exchange order.

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
    /// The merchant's identifier of the new order, or ours if the merchant did not send one.
    pub exchange_order_identifier: String,
    /// The returned units that the order replaces.
    pub units: Vec<UnitId>,
    pub placed_at: DateTime<Utc>,
}

/// Units were not exchanged, permanently or for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeFailed {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// The returned units that are not exchanged.
    pub units: Vec<UnitId>,
    pub cause: FailureCause,
    /// An explanation for people.
    pub detail: String,
    pub failed_at: DateTime<Utc>,
}

/// The cause of a failed exchange. A final failure means that the units are refunded instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The chosen variant is out of stock. Final.
    OutOfStock,
    /// Another exchange order was placed against the same order. Final.
    AlreadyExchanged,
    /// The merchant did not accept the order. Not final: an operator replays or abandons it.
    Undeliverable,
    /// The merchant did not accept the order, and an operator abandoned it. Final.
    Abandoned,
}

impl FailureCause {
    /// Whether the units are refunded instead.
    pub fn is_final(self) -> bool {
        self != Self::Undeliverable
    }

    /// Whether another return of the order can be exchanged, because nothing was ordered.
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
