//! The events that report the outcome of an exchange order.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::MerchantId;
use crate::event::Event;
use crate::returns::{RefundType, UnitId};

/// The merchant accepted the exchange order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangePlaced {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// The merchant's identifier of the new order, or `own_identifier` if the merchant sent none
    /// that can be used.
    pub exchange_order_identifier: String,
    /// Our identifier of the new order. It replaces `exchange_order_identifier` where that is the
    /// identifier of another order.
    pub own_identifier: String,
    /// The identifier in the merchant's response, if it belongs to the original order or to another
    /// exchange order and is therefore not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_identifier: Option<String>,
    /// The returned units that the order replaces.
    pub items: Vec<PlacedItem>,
    /// The time before the first request to the merchant. An order that was stored earlier is not
    /// the exchange order.
    pub ordered_at: DateTime<Utc>,
    pub placed_at: DateTime<Utc>,
}

/// A returned unit that the exchange order replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlacedItem {
    #[serde(flatten)]
    pub unit: UnitId,
    /// `EVEN_EXCHANGE` if the variant has the price that the unit was sold for, and
    /// `UNEVEN_EXCHANGE` for another price or a gift card.
    pub refund_type: RefundType,
    /// The price of the variant. Absent for a gift card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_price_amount_cents: Option<i64>,
}

/// Units are not exchanged and are refunded instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeFailed {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// The returned units that are not exchanged.
    pub items: Vec<FailedItem>,
    pub failed_at: DateTime<Utc>,
}

/// A returned unit that is not exchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedItem {
    #[serde(flatten)]
    pub unit: UnitId,
    pub reason: FailureReason,
    /// An explanation for people.
    pub detail: String,
}

/// The delivery of the exchange order failed. The units wait until an operator replays the delivery,
/// which is followed by `exchange.placed`, or abandons the order, which is followed by
/// `exchange.failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeUndeliverable {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// The returned units that the order replaces.
    pub items: Vec<UnitId>,
    /// An explanation for people.
    pub reason: String,
    pub at: DateTime<Utc>,
}

/// The identifier in the merchant's response belongs to another order, so the exchange order has
/// our identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeRenamed {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    pub original_order_id: String,
    /// The identifier in the merchant's response.
    pub rejected_identifier: String,
    /// Our identifier of the exchange order.
    pub exchange_order_identifier: String,
    pub renamed_at: DateTime<Utc>,
}

/// The reason that a unit is not exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The chosen variant is out of stock.
    OutOfStock,
    /// The merchant's price of the chosen variant is not the price that the shopper was shown.
    PriceChanged,
    /// Another return of the order has an exchange order.
    AlreadyExchanged,
    /// The merchant did not accept the order, and an operator abandoned it.
    Abandoned,
}

impl FailureReason {
    /// Whether another return of the order can be exchanged, because nothing was ordered.
    pub fn allows_another_exchange(self) -> bool {
        match self {
            Self::OutOfStock | Self::PriceChanged => true,
            Self::AlreadyExchanged | Self::Abandoned => false,
        }
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

impl Event for ExchangeRenamed {
    const TYPE: &'static str = "exchange.renamed.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.original_order_id)
    }
}

impl Event for ExchangeUndeliverable {
    const TYPE: &'static str = "exchange.undeliverable.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.original_order_id)
    }
}
