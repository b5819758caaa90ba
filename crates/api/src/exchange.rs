//! Exchange orders, as exchange shows them.

use chrono::{DateTime, Utc};
use domain::exchange::{FailedItem, OrderAmounts, PlacedItem};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};
use utoipa::ToSchema;
use uuid::Uuid;

/// State of an exchange.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = ExchangeState)]
pub enum State {
    /// Confirmed and not yet decided.
    Waiting,
    /// The exchange order is being delivered to the merchant.
    Sending,
    /// The merchant accepted the exchange order.
    Placed,
    /// Delivery to the merchant failed. A replay can still place the exchange order.
    Undeliverable,
    /// The merchant responded that it has an exchange order for the original order. The units wait for
    /// an operator, who replays or abandons the order.
    AlreadyExists,
    /// Delivery failed and an operator abandoned the exchange order. The units are refunded.
    Abandoned,
    /// The order already had an exchange order. The units are refunded.
    AlreadyExchanged,
    /// Every chosen variant was out of stock or had another price. The units are refunded.
    NotExchangeable,
    /// The stored confirmation cannot be parsed and waits for an operator.
    Unreadable,
}

/// Result of the stock or price check before the exchange order was placed.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CheckResult {
    /// The merchant's response was checked.
    Checked,
    /// The merchant did not report some variants or their prices; they were ordered without a check.
    Unchecked,
    /// The exchange order has only gift cards, which have neither stock nor a price.
    NotNeeded,
}

impl State {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the state belongs to an exchange order. The other states belong to a confirmation.
    pub fn is_of_order(self) -> bool {
        match self {
            Self::Sending
            | Self::Placed
            | Self::Undeliverable
            | Self::AlreadyExists
            | Self::Abandoned => true,
            Self::Waiting | Self::AlreadyExchanged | Self::NotExchangeable | Self::Unreadable => {
                false
            }
        }
    }
}

impl CheckResult {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A confirmed exchange and, if there is one, its exchange order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ExchangeOrderSummary)]
pub struct ExchangeOrderView {
    pub merchant: String,
    pub original_order_id: String,
    pub rma_identifier: String,
    pub state: State,
    /// Identifier of the new order at the merchant, or ours if that belongs to another order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange_order_identifier: Option<String>,
    /// Amounts from the merchant's response.
    pub amounts: OrderAmounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<Uuid>,
    /// The delivery to the merchant, sent as `webhook-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Uuid>,
    /// Exchanged units.
    pub items: Vec<PlacedItem>,
    /// Units that are refunded because their variant was out of stock or had another price.
    pub failed: Vec<FailedItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stock_check: Option<CheckResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_check: Option<CheckResult>,
    /// Reason that the variants could not be requested from the merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_detail: Option<String>,
    /// Time at which the confirmation was received.
    pub received_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered_at: Option<DateTime<Utc>>,
    /// Time at which the order was last placed, abandoned or given up as undeliverable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<DateTime<Utc>>,
    /// Only if the exchange order was abandoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandonment: Option<Abandonment>,
}

/// The decision to abandon an exchange order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Abandonment {
    /// The operator: a client, or the e-mail address of a person.
    pub by: String,
    /// The reason.
    pub note: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OtherReturn {
    pub rma_identifier: String,
    pub state: State,
    pub received_at: DateTime<Utc>,
}
