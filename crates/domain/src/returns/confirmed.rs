//! The news that a shopper confirmed a return for which something else is to be sent.

use chrono::{DateTime, Utc};
use iso_currency::Currency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UnitId;
use crate::access::MerchantId;
use crate::event::Event;
use crate::order::{Address, Customer};

/// A return was confirmed and some of its units are exchanged, for another variant or for a gift
/// card. It speaks of one order: a return of several orders is announced once for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnConfirmed {
    pub merchant: MerchantId,
    pub rma_identifier: String,
    /// The order that the units belong to; at most one exchange order is ever placed against it.
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
    /// The merchant's gift card; there whenever a unit is exchanged for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gift_card: Option<GiftCardOffer>,
    pub confirmed_at: DateTime<Utc>,
}

/// A unit that is exchanged, with its part of the line's amounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmedUnit {
    #[serde(flatten)]
    pub id: UnitId,
    /// What the unit is known by; its UPC where the order gives no SKU.
    pub sku: String,
    pub title: String,
    pub product_identifier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant_identifier: Option<String>,
    /// The brand that sold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concept: Option<String>,
    /// The price of one unit on the order's line.
    pub unit_price_amount_cents: i64,
    pub product_amount_cents: i64,
    pub discount_amount_cents: i64,
    pub tax_amount_cents: i64,
    pub replacement: Replacement,
}

/// What the shopper gets for a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resolution", rename_all = "snake_case")]
pub enum Replacement {
    Exchange { variant: Variant },
    GiftCard,
}

/// A variant of a product that a unit is exchanged for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Variant {
    pub sku: String,
    pub title: String,
    /// Defaults to the returned unit's: not every merchant says what a variant costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub unit_price_amount_cents: Option<i64>,
    /// Defaults to the returned unit's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_identifier: Option<String>,
}

/// The gift card that a merchant's shoppers can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GiftCardOffer {
    /// The SKU agreed with the merchant for gift cards.
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    /// What the shopper gets on top for choosing the card, once for each exchange order.
    #[schema(minimum = 0)]
    pub bonus_credit_amount_cents: i64,
}

impl Event for ReturnConfirmed {
    const TYPE: &'static str = "return.confirmed.v1";

    fn subject(&self) -> String {
        format!("{}/{}", self.merchant, self.rma_identifier)
    }
}
