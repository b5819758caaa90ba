//! The states of an exchange and of its stock check.

use platform::database::DatabaseError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// State of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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
    /// Delivery failed and an operator abandoned the exchange order. The units are refunded.
    Abandoned,
    /// The order already had an exchange order. The units are refunded.
    AlreadyExchanged,
    /// Every chosen variant was out of stock. The units are refunded.
    OutOfStock,
    /// The stored confirmation cannot be parsed and waits for an operator.
    Unreadable,
}

/// Result of the stock check before the exchange order was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stock {
    /// The merchant reported its stock.
    Checked,
    /// The merchant did not report stock for some variants; they were ordered without a check.
    Unchecked,
    /// The exchange order has only items without stock, such as gift cards.
    NotNeeded,
}

/// A stored value that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("unknown stored value `{0}`")]
struct Unknown(String);

fn unknown(word: &str) -> DatabaseError {
    diesel::result::Error::DeserializationError(Box::new(Unknown(word.to_owned()))).into()
}

impl State {
    const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Sending,
        Self::Placed,
        Self::Undeliverable,
        Self::Abandoned,
        Self::AlreadyExchanged,
        Self::OutOfStock,
        Self::Unreadable,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Sending => "sending",
            Self::Placed => "placed",
            Self::Undeliverable => "undeliverable",
            Self::Abandoned => "abandoned",
            Self::AlreadyExchanged => "already_exchanged",
            Self::OutOfStock => "out_of_stock",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether the state belongs to an exchange order. The other states belong to a confirmation.
    pub(crate) fn is_of_order(self) -> bool {
        match self {
            Self::Sending | Self::Placed | Self::Undeliverable | Self::Abandoned => true,
            Self::Waiting | Self::AlreadyExchanged | Self::OutOfStock | Self::Unreadable => false,
        }
    }

    pub(crate) fn read(word: &str) -> Result<Self, DatabaseError> {
        Self::ALL.into_iter().find(|state| state.as_str() == word).ok_or_else(|| unknown(word))
    }
}

impl Stock {
    const ALL: [Self; 3] = [Self::Checked, Self::Unchecked, Self::NotNeeded];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Checked => "checked",
            Self::Unchecked => "unchecked",
            Self::NotNeeded => "not_needed",
        }
    }

    pub(crate) fn read(word: &str) -> Result<Self, DatabaseError> {
        Self::ALL.into_iter().find(|stock| stock.as_str() == word).ok_or_else(|| unknown(word))
    }
}
