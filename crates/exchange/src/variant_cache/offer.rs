//! Variants from one response of a merchant, and the API's view of them.

use chrono::{DateTime, Utc};
use domain::exchange::{OfferedVariant, VariantIdentifier, Variants};
use platform::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reason, Unavailable};

/// Parsed variants take about this many times the length of the response.
const MEMORY_FACTOR: u32 = 3;

/// Variants from one response of a merchant.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) variants: Variants,
    pub(crate) requested_at: Timestamp,
    weight: u32,
}

impl Offer {
    pub(super) fn new(variants: Variants, requested_at: Timestamp, response_bytes: usize) -> Self {
        let length = u32::try_from(response_bytes).unwrap_or(u32::MAX);
        let weight = length.saturating_mul(MEMORY_FACTOR).saturating_add(500);
        Self { variants, requested_at, weight }
    }

    /// Approximate memory use in bytes; never zero.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Approximate length of the JSON.
    pub(crate) fn length(&self) -> usize {
        usize::try_from(self.weight / MEMORY_FACTOR).unwrap_or(usize::MAX)
    }
}

/// The variants that a merchant offers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Offer)]
pub(crate) struct OfferView<'a> {
    #[schema(value_type = String)]
    variant_identifier: &'a VariantIdentifier,
    /// Whether the merchant returned its variants. If not, `variants` is empty and the return
    /// continues without an exchange.
    available: bool,
    /// Variants in stock, in the merchant's order.
    #[schema(value_type = Vec<OfferedVariant>)]
    variants: &'a [OfferedVariant],
    /// Time of the request to the merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    requested_at: Option<DateTime<Utc>>,
    /// Reason that no variants are available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Readable form of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl<'a> OfferView<'a> {
    pub(crate) fn new(
        variant_identifier: &'a VariantIdentifier,
        lookup: Result<&'a Offer, &'a Unavailable>,
    ) -> Self {
        let offer = lookup.ok();
        let unavailable = lookup.err();
        Self {
            variant_identifier,
            available: offer.is_some(),
            variants: offer.map_or(&[], |offer| &offer.variants.offered),
            requested_at: offer.map(|offer| offer.requested_at),
            reason: unavailable.map(|none| none.reason),
            detail: unavailable.map(|none| none.detail.as_str()),
        }
    }
}
