//! The exchange order as the merchant receives it.
//!
//! The amounts of an item are those of the units that come back for it: what the shopper paid is
//! what the new order is worth, and unit price times quantity stays the product amount. Tax and
//! shipping of the new order are the merchant's to compute.

use iso_currency::Currency;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::order::{Address, Customer};
use crate::returns::{ConfirmedUnit, Replacement, ReturnConfirmed, Variant};
use crate::schema::json_schema;

/// A new order for what the shopper chose instead of a refund.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExchangeOrder {
    /// The order whose units come back: the key under which this order is placed once.
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

/// What payments of exchange orders are reported and reconciled by.
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
    /// The line of the original order that comes back.
    pub original_item_identifier: String,
    /// The brand that sold it.
    #[schema(required)]
    pub concept: Option<String>,
}

/// A gift card for everything that was exchanged for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GiftCardItem {
    /// Agreed beforehand.
    pub sku: String,
    #[schema(minimum = 1)]
    pub quantity: i64,
    /// What the card is worth without the bonus.
    pub unit_price_amount_cents: i64,
    pub bonus_credit_amount_cents: i64,
    #[schema(min_items = 1)]
    pub return_items: Vec<ReturnItem>,
}

/// A line of the original order that was exchanged for the card.
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

/// A confirmation that no exchange order can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unplaceable {
    #[error("no unit is exchanged")]
    Nothing,
    #[error("a unit is exchanged for a gift card, and no gift card is named")]
    NoGiftCard,
}

/// What merchants receive.
pub fn exchange_order_schema() -> Value {
    json_schema::<ExchangeOrder>("Exchange order")
}

impl ExchangeOrder {
    /// The one order for these units of a confirmed return.
    pub fn new(
        confirmed: &ReturnConfirmed,
        units: &[&ConfirmedUnit],
        transaction_id: Uuid,
    ) -> Result<Self, Unplaceable> {
        if units.is_empty() {
            return Err(Unplaceable::Nothing);
        }
        let mut items = Vec::new();
        for unit in units {
            if let Replacement::Exchange { variant } = &unit.replacement {
                exchange(&mut items, unit, variant);
            }
        }
        let mut items: Vec<_> = items.into_iter().map(Item::Exchange).collect();
        items.extend(gift_card(confirmed, units)?.map(Item::GiftCard));
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

/// Units of one line that become the same variant are one item.
fn exchange(items: &mut Vec<ExchangeItem>, unit: &ConfirmedUnit, variant: &Variant) {
    let line = &unit.id.order_line_item_identifier;
    let same = |item: &&mut ExchangeItem| {
        item.original_item_identifier == *line && item.sku == variant.sku
    };
    if let Some(item) = items.iter_mut().find(same) {
        item.quantity += 1;
        item.product_amount_cents += unit.product_amount_cents;
        item.discount_amount_cents += unit.discount_amount_cents;
        item.tax_amount_cents += unit.tax_amount_cents;
        return;
    }
    let product_identifier = variant.product_identifier.as_ref();
    items.push(ExchangeItem {
        sku: variant.sku.clone(),
        quantity: 1,
        title: variant.title.clone(),
        unit_price_amount_cents: unit.unit_price_amount_cents,
        product_amount_cents: unit.product_amount_cents,
        discount_amount_cents: unit.discount_amount_cents,
        tax_amount_cents: unit.tax_amount_cents,
        product_identifier: product_identifier.unwrap_or(&unit.product_identifier).clone(),
        variant_identifier: unit.variant_identifier.clone(),
        original_sku: unit.sku.clone(),
        original_item_identifier: line.clone(),
        concept: unit.concept.clone(),
    });
}

/// One card for all units that were exchanged for one, with one bonus.
fn gift_card(
    confirmed: &ReturnConfirmed,
    units: &[&ConfirmedUnit],
) -> Result<Option<GiftCardItem>, Unplaceable> {
    let (mut worth, mut return_items) = (0, Vec::<ReturnItem>::new());
    for unit in units.iter().filter(|unit| unit.replacement == Replacement::GiftCard) {
        worth += unit.product_amount_cents - unit.discount_amount_cents + unit.tax_amount_cents;
        let line = &unit.id.order_line_item_identifier;
        match return_items.iter_mut().find(|item| item.original_item_identifier == *line) {
            Some(item) => item.quantity += 1,
            None => return_items.push(ReturnItem {
                title: unit.title.clone(),
                original_sku: unit.sku.clone(),
                original_item_identifier: line.clone(),
                quantity: 1,
                concept: unit.concept.clone(),
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
        unit_price_amount_cents: worth,
        bonus_credit_amount_cents: offer.bonus_credit_amount_cents,
        return_items,
    }))
}
