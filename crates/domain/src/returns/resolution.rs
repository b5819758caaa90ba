//! What a shopper gets for a unit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::words;
use super::{Replacement, Variant};

/// What the shopper wants for a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum Resolution {
    Refund,
    Exchange { variant: Variant },
    GiftCard,
}

impl Resolution {
    /// What the exchange service is told, when something is sent instead.
    pub fn replacement(&self) -> Option<Replacement> {
        match self {
            Self::Refund => None,
            Self::Exchange { variant } => Some(Replacement::Exchange { variant: variant.clone() }),
            Self::GiftCard => Some(Replacement::GiftCard),
        }
    }

    /// What the merchant is told. An exchange is even when the variant costs what the unit did.
    pub fn refund_type(&self, unit_price_amount_cents: i64) -> RefundType {
        match self {
            Self::Refund => RefundType::Refund,
            Self::Exchange { variant } => match variant.unit_price_amount_cents {
                Some(price) if price != unit_price_amount_cents => RefundType::UnevenExchange,
                _ => RefundType::EvenExchange,
            },
            Self::GiftCard => RefundType::UnevenExchange,
        }
    }
}

/// What the merchant is told that the shopper gets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RefundType {
    Refund,
    /// Another variant at the same price.
    EvenExchange,
    /// Another variant at another price, or a gift card.
    UnevenExchange,
}

impl RefundType {
    pub const ALL: [Self; 3] = [Self::Refund, Self::EvenExchange, Self::UnevenExchange];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refund => "REFUND",
            Self::EvenExchange => "EVEN_EXCHANGE",
            Self::UnevenExchange => "UNEVEN_EXCHANGE",
        }
    }
}

words!(RefundType);
