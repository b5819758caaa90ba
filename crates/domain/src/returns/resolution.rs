//! The shopper's choice for a unit, and the refund type that the merchant receives.

use serde::{Deserialize, Serialize};
use strum::VariantArray;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{Replacement, Variant};

/// The shopper's choice for a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum Resolution {
    Refund,
    Exchange { variant: Variant },
    GiftCard,
}

/// The shopper's choice for a unit. Code generators cannot combine alternatives with the fields of a
/// unit, so the API documents describe them as one object.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes Resolution in the API documents")]
struct ResolutionFields {
    resolution: ResolutionKind,
    /// With `exchange`, and only then.
    #[schema(nullable = false)]
    variant: Option<Variant>,
}

crate::words! {
    /// The shopper's choice for a unit, without its details.
    pub enum ResolutionKind as "snake_case" {
        Refund,
        Exchange,
        GiftCard,
    }
}

impl ResolutionKind {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl PartialSchema for Resolution {
    fn schema() -> RefOr<Schema> {
        ResolutionFields::schema()
    }
}

impl ToSchema for Resolution {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ResolutionFields::schemas(schemas);
    }
}

impl Resolution {
    pub fn kind(&self) -> ResolutionKind {
        match self {
            Self::Refund => ResolutionKind::Refund,
            Self::Exchange { .. } => ResolutionKind::Exchange,
            Self::GiftCard => ResolutionKind::GiftCard,
        }
    }

    /// The item that the exchange service orders, unless the unit is refunded.
    pub fn replacement(&self) -> Option<Replacement> {
        match self {
            Self::Refund => None,
            Self::Exchange { variant } => Some(Replacement::Exchange { variant: variant.clone() }),
            Self::GiftCard => Some(Replacement::GiftCard),
        }
    }

    /// An exchange is even when the variant and the unit have the same price.
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

crate::words! {
    /// The resolution as the merchant's RMA message states it.
    pub enum RefundType as "SCREAMING_SNAKE_CASE" {
        Refund,
        /// Another variant at the same price.
        EvenExchange,
        /// Another variant at another price, or a gift card.
        UnevenExchange,
    }
}
