//! The reasons why a unit cannot be returned. [`crate::policy`] decides.
//!
//! See docs/decisions/return-eligibility.md.

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use utoipa::ToSchema;

use crate::merchant::Rule;

crate::words! {
    /// Why a unit cannot be returned.
    pub enum IneligibleCode as "snake_case" {
        OrderCancelled,
        NotShipped,
        AlreadyReturned,
        AlreadyRefunded,
        /// The order cannot have another exchange. The unit can be returned for a refund.
        AlreadyExchanged,
        /// The unit is too heavy for express-returns. It can be returned with another method.
        TooHeavyForExpress,
        FinalSale,
        /// A rule of the merchant excludes the unit.
        NotReturnable,
        WindowExpired,
        /// A refund, an exchange or a gift card is not offered.
        OutcomeNotOffered,
        /// The return method is not offered.
        MethodNotOffered,
        /// The shopper cannot keep the unit: no rule allows it, or the return costs too much.
        KeepNotAllowed,
        /// The unit goes to another warehouse than the first unit of the return. It can be returned separately.
        OtherWarehouse,
    }
}

impl IneligibleCode {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Whether staff can override the reason: policy reasons yes, facts no.
    pub fn is_overridable(self) -> bool {
        match self {
            Self::OrderCancelled
            | Self::NotShipped
            | Self::AlreadyReturned
            | Self::AlreadyRefunded
            | Self::AlreadyExchanged
            | Self::TooHeavyForExpress => false,
            Self::FinalSale
            | Self::NotReturnable
            | Self::WindowExpired
            | Self::OutcomeNotOffered
            | Self::MethodNotOffered
            | Self::KeepNotAllowed
            | Self::OtherWarehouse => true,
        }
    }

    /// Whether the reason is about the method or the result, so that another choice may be possible.
    pub fn is_of_choice(self) -> bool {
        matches!(
            self,
            Self::TooHeavyForExpress
                | Self::AlreadyExchanged
                | Self::OutcomeNotOffered
                | Self::MethodNotOffered
                | Self::KeepNotAllowed
        )
    }
}

/// The reason why a unit cannot be returned, as a code and as a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Ineligible {
    pub code: IneligibleCode,
    pub detail: String,
    /// The id of the merchant's rule that caused it; absent if the merchant's other settings or facts did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "final-sale")]
    pub rule: Option<String>,
}

impl Ineligible {
    pub fn new(code: IneligibleCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), rule: None }
    }

    /// The detail with the rule.
    pub fn in_words(&self) -> String {
        let Self { detail, rule, .. } = self;
        rule.as_ref().map_or_else(|| detail.clone(), |rule| format!("{detail} (rule {rule})"))
    }

    #[must_use]
    pub fn by(self, rule: &Rule) -> Self {
        Self { rule: Some(rule.id.clone()), ..self }
    }
}

/// The staff member who allows a return against the merchant's policy, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StaffOverride {
    #[schema(min_length = 1, max_length = 255)]
    pub by: String,
    #[schema(min_length = 1, max_length = 1000)]
    pub reason: String,
}
