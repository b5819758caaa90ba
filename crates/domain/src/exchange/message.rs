//! The exchange order message for the merchant.
//!
//! An item of an even exchange has the amounts of the units that it replaces, so the new order is
//! worth what the shopper paid. An item of an uneven exchange has the variant's price. The merchant
//! computes tax and shipping of the new order.

use iso_currency::Currency;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::CheckedUnit;
use crate::order::{Address, Customer};
use crate::returns::{ConfirmedUnit, RefundType, Replacement, ReturnConfirmed, Variant};
use crate::schema::json_schema;

/// A new order for the items that a shopper chose instead of a refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeOrder {
    /// The order whose units are returned. At most one exchange order is placed per order.
    #[schema(min_length = 1, max_length = 255)]
    pub original_order_id: String,
    pub rma_identifier: String,
    #[schema(value_type = String, pattern = "^[A-Z]{3}$")]
    pub currency: Currency,
    /// Whether the shopper is the giftee and not the buyer.
    pub is_gift: bool,
    #[schema(min_items = 1)]
    pub items: Vec<Item>,
    pub customer: Customer,
    pub payment: Payment,
    pub shipping_address: Address,
    pub billing_address: Address,
}

/// The payment reference for reports and reconciliation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Payment {
    pub transaction_id: Uuid,
}

/// One line of an exchange order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Item {
    GiftCard(GiftCardItem),
    Exchange(ExchangeItem),
}

/// A replacement variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeItem {
    pub sku: String,
    #[schema(minimum = 1)]
    pub quantity: i64,
    pub title: String,
    pub unit_price_amount_cents: i64,
    pub product_amount_cents: i64,
    pub discount_amount_cents: i64,
    pub tax_amount_cents: i64,
    pub product_identifier: String,
    #[schema(required)]
    pub variant_identifier: Option<String>,
    pub original_sku: String,
    /// The returned line of the original order.
    pub original_item_identifier: String,
    /// The brand that sold the returned unit, or the merchant's default.
    #[schema(required)]
    pub concept: Option<String>,
}

/// One gift card for all units that were exchanged for a gift card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GiftCardItem {
    /// The SKU agreed with the merchant for gift cards.
    pub sku: String,
    #[schema(minimum = 1)]
    pub quantity: i64,
    /// The value of the card without the bonus.
    pub unit_price_amount_cents: i64,
    pub bonus_credit_amount_cents: i64,
    #[schema(min_items = 1)]
    pub return_items: Vec<ReturnItem>,
}

/// A line of the original order that was exchanged for the gift card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnItem {
    pub title: String,
    pub original_sku: String,
    pub original_item_identifier: String,
    #[schema(minimum = 1)]
    pub quantity: i64,
    #[schema(required)]
    pub concept: Option<String>,
}

/// Why no exchange order can be made of a confirmed return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unplaceable {
    #[error("no unit is exchanged")]
    NoUnits,
    #[error("a unit is exchanged for a gift card, but the merchant offers none")]
    NoGiftCard,
}

pub fn exchange_order_schema() -> Value {
    json_schema::<ExchangeOrder>("Exchange order")
}

impl ExchangeOrder {
    /// The exchange order for these units of a confirmed return. Units without a concept get
    /// `default_concept`.
    pub fn new(
        confirmed: &ReturnConfirmed,
        units: &[CheckedUnit<'_>],
        default_concept: Option<&str>,
        transaction_id: Uuid,
    ) -> Result<Self, Unplaceable> {
        if units.is_empty() {
            return Err(Unplaceable::NoUnits);
        }
        let mut items = Vec::new();
        for unit in units {
            if let Replacement::Exchange { variant } = &unit.unit.replacement {
                add_exchange(&mut items, unit, variant, default_concept);
            }
        }
        let mut items: Vec<_> = items.into_iter().map(Item::Exchange).collect();
        items.extend(gift_card(confirmed, units, default_concept)?.map(Item::GiftCard));
        Ok(Self {
            original_order_id: confirmed.original_order_id.clone(),
            rma_identifier: confirmed.rma_identifier.clone(),
            currency: confirmed.currency,
            is_gift: confirmed.is_gift,
            items,
            customer: confirmed.customer.clone(),
            payment: Payment { transaction_id },
            shipping_address: confirmed.shipping_address.clone(),
            billing_address: confirmed.billing_address.clone(),
        })
    }
}

/// Units of one line that are exchanged for the same variant share one item.
fn add_exchange(
    items: &mut Vec<ExchangeItem>,
    checked: &CheckedUnit<'_>,
    variant: &Variant,
    default_concept: Option<&str>,
) {
    let unit = checked.unit;
    let price = checked.unit_price_amount_cents.unwrap_or(unit.unit_price_amount_cents);
    let (product, discount, tax) = match checked.refund_type {
        // A bonus never makes the price negative.
        RefundType::UnevenExchange => (price, unit.bonus_amount_cents.min(price), 0),
        _ => (unit.product_amount_cents, unit.discount_amount_cents, unit.tax_amount_cents),
    };
    let line = &unit.id.order_line_item_identifier;
    let is_same = |item: &&mut ExchangeItem| {
        item.original_item_identifier == *line && item.sku == variant.sku
    };
    if let Some(item) = items.iter_mut().find(is_same) {
        item.quantity += 1;
        item.product_amount_cents += product;
        item.discount_amount_cents += discount;
        item.tax_amount_cents += tax;
        return;
    }
    let product_identifier = variant.product_identifier.as_ref();
    items.push(ExchangeItem {
        sku: variant.sku.clone(),
        quantity: 1,
        title: variant.title.clone(),
        unit_price_amount_cents: price,
        product_amount_cents: product,
        discount_amount_cents: discount,
        tax_amount_cents: tax,
        product_identifier: product_identifier.unwrap_or(&unit.product_identifier).clone(),
        variant_identifier: unit.variant_identifier.clone(),
        original_sku: unit.sku.clone(),
        original_item_identifier: line.clone(),
        concept: concept(unit, default_concept),
    });
}

fn concept(unit: &ConfirmedUnit, default_concept: Option<&str>) -> Option<String> {
    unit.concept.as_deref().or(default_concept).map(ToOwned::to_owned)
}

/// One gift card with one bonus for all units that were exchanged for a gift card.
fn gift_card(
    confirmed: &ReturnConfirmed,
    units: &[CheckedUnit<'_>],
    default_concept: Option<&str>,
) -> Result<Option<GiftCardItem>, Unplaceable> {
    let mut value = 0;
    let mut return_items = Vec::<ReturnItem>::new();
    let units = units.iter().map(|checked| checked.unit);
    for unit in units.filter(|unit| unit.replacement == Replacement::GiftCard) {
        value += unit.product_amount_cents - unit.discount_amount_cents + unit.tax_amount_cents;
        let line = &unit.id.order_line_item_identifier;
        match return_items.iter_mut().find(|item| item.original_item_identifier == *line) {
            Some(item) => item.quantity += 1,
            None => return_items.push(ReturnItem {
                title: unit.title.clone(),
                original_sku: unit.sku.clone(),
                original_item_identifier: line.clone(),
                quantity: 1,
                concept: concept(unit, default_concept),
            }),
        }
    }
    if return_items.is_empty() {
        return Ok(None);
    }
    let offer = confirmed.gift_card.as_ref().ok_or(Unplaceable::NoGiftCard)?;
    Ok(Some(GiftCardItem {
        sku: offer.sku.clone(),
        quantity: 1,
        unit_price_amount_cents: value,
        bonus_credit_amount_cents: offer.bonus_credit_amount_cents,
        return_items,
    }))
}
