//! The words of the record.

use platform::database::DatabaseError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far an exchange has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ExchangeState)]
pub(crate) enum State {
    /// Confirmed and not yet decided.
    Waiting,
    /// On its way to the merchant.
    Sending,
    /// The merchant took it.
    Placed,
    /// The merchant did not take it; a replay may still place it.
    Undeliverable,
    /// The merchant did not take it and an operator ended it: refunded instead.
    Abandoned,
    /// An exchange order was placed for the order before: refunded instead.
    AlreadyExchanged,
    /// Everything that was chosen was gone: refunded instead.
    OutOfStock,
    /// What was confirmed cannot be read: it lies aside until somebody looks.
    Unreadable,
}

/// Whether stock was asked for again before the order was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stock {
    /// The merchant said what there is.
    Checked,
    /// For some of it the merchant gave no answer, and it was ordered all the same.
    Unchecked,
    /// Nothing in the order has a stock.
    NotNeeded,
}

/// A word that this version of the program does not know.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` stands in the record and means nothing")]
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

    /// Whether it is said of an order that was made; the others are said of a confirmation.
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
