//! The event `return.confirmed.v1`: a shopper confirmed a return with units to exchange.

use chrono::{DateTime, Utc};
use iso_currency::Currency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UnitId;
use crate::access::MerchantId;
use crate::event::Event;
use crate::merchant::GiftCardOffer;
use crate::order::{Address, Customer};

/// A shopper confirmed a return in which units are exchanged for another variant or for a gift
/// card. The event is about one order: a return of several orders is published once per order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnConfirmed {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    /// The order of the units. At most one exchange order is placed against it.
    pub original_order_id: String,
    #[schema(value_type = String)]
    pub currency: Currency,
    /// Whether the shopper is the giftee and not the buyer.
    pub is_gift: bool,
    pub customer: Customer,
    pub shipping_address: Address,
    pub billing_address: Address,
    /// The exchanged units only, at least one.
    pub units: Vec<ConfirmedUnit>,
    /// The merchant's gift card. Present when a unit is exchanged for a gift card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gift_card: Option<GiftCardOffer>,
    pub confirmed_at: DateTime<Utc>,
}

/// An exchanged unit with its share of the line's amounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedUnit {
    #[serde(flatten)]
    pub id: UnitId,
    /// The SKU, or the UPC where the order has no SKU.
    pub sku: String,
    pub title: String,
    pub product_identifier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant_identifier: Option<String>,
    /// The brand that sold the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concept: Option<String>,
    /// The unit price on the order line.
    pub unit_price_amount_cents: i64,
    pub product_amount_cents: i64,
    pub discount_amount_cents: i64,
    pub tax_amount_cents: i64,
    /// The discount on a variant of another price that a rule of the merchant gives.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub bonus_amount_cents: i64,
    pub replacement: Replacement,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(cents: &i64) -> bool {
    *cents == 0
}

/// The item that the shopper gets in exchange for a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum Replacement {
    Exchange { variant: Variant },
    GiftCard,
}

/// A variant of a product that a unit is exchanged for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Variant {
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    #[schema(min_length = 1, max_length = 1000)]
    pub title: String,
    /// Defaults to the price of the returned unit, because not every merchant sends one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub unit_price_amount_cents: Option<i64>,
    /// Defaults to the product of the returned unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub product_identifier: Option<String>,
}

impl Event for ReturnConfirmed {
    const TYPE: &'static str = "return.confirmed.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.rma_identifier)
    }
}
