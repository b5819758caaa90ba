//! The states of an exchange and the results of its checks.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};
use utoipa::ToSchema;

/// State of an exchange.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = ExchangeState)]
pub(crate) enum State {
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
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum CheckResult {
    /// The merchant's response was checked.
    Checked,
    /// The merchant did not report some variants or their prices; they were ordered without a check.
    Unchecked,
    /// The exchange order has only gift cards, which have neither stock nor a price.
    NotNeeded,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the state belongs to an exchange order. The other states belong to a confirmation.
    pub(crate) fn is_of_order(self) -> bool {
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
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }
}
