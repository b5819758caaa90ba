//! The check of stock and price before an exchange order is placed.

use std::collections::HashMap;

use super::{FailedItem, FailureReason, OfferedVariant, PlacedItem, Variants};
use crate::returns::{ConfirmedUnit, RefundType, Replacement, Variant};

/// The variants of each product, by variant identifier; `None` if the merchant did not respond.
pub type VariantLookups<'a> = HashMap<&'a str, Option<&'a Variants>>;

/// A unit that can be exchanged, and the terms of its exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedUnit<'a> {
    pub unit: &'a ConfirmedUnit,
    pub refund_type: RefundType,
    /// The price of the variant. `None` for a gift card.
    pub unit_price_amount_cents: Option<i64>,
}

/// Units by whether they can still be exchanged.
#[derive(Debug, Default)]
pub struct VariantCheck<'a> {
    pub exchangeable: Vec<CheckedUnit<'a>>,
    pub failed: Vec<FailedItem>,
    /// The number of exchangeable units without a response from the merchant.
    pub without_stock: usize,
    /// The number of exchangeable units without a price from the merchant.
    pub without_price: usize,
}

/// Checks stock and price of the variant of each unit. Where the merchant states a quantity, the
/// first units get it.
///
/// A giftee saw no prices, so the merchant's price applies to a gift. Without a response a unit stays
/// exchangeable, because the merchant can still reject the order. Without a price from the merchant the
/// exchange is even.
pub fn check_variants<'a>(
    units: &'a [ConfirmedUnit],
    is_gift: bool,
    lookups: &VariantLookups<'_>,
) -> VariantCheck<'a> {
    let mut check = VariantCheck::default();
    let mut reserved = HashMap::<(&str, &str), i64>::new();
    for unit in units {
        let Replacement::Exchange { variant } = &unit.replacement else {
            check.exchangeable.push(CheckedUnit::gift_card(unit));
            continue;
        };
        let product = unit.variant_identifier.as_deref();
        let found = product.and_then(|product| Some((product, lookups.get(product).copied()??)));
        let Some((product, variants)) = found else {
            check.without_stock += 1;
            check.without_price += 1;
            check.exchangeable.push(CheckedUnit::variant(unit, None));
            continue;
        };
        let offered = variants.offered.iter().find(|offered| offered.sku == variant.sku);
        let reserved = reserved.entry((product, &variant.sku)).or_default();
        match check_variant(unit, variant, is_gift, offered, *reserved) {
            Ok(price) => {
                *reserved += 1;
                check.without_price += usize::from(price.is_none());
                check.exchangeable.push(CheckedUnit::variant(unit, price));
            }
            Err((reason, detail)) => {
                check.failed.push(FailedItem { unit: unit.id.clone(), reason, detail });
            }
        }
    }
    check
}

/// Returns the merchant's price of the variant, if it has one.
fn check_variant(
    unit: &ConfirmedUnit,
    chosen: &Variant,
    is_gift: bool,
    offered: Option<&OfferedVariant>,
    reserved: i64,
) -> Result<Option<i64>, (FailureReason, String)> {
    let in_stock = |variant: &&OfferedVariant| {
        variant.quantity_in_stock.is_none_or(|quantity| reserved < quantity)
    };
    let Some(offered) = offered.filter(in_stock) else {
        let detail = format!("variant {} is out of stock", chosen.sku);
        return Err((FailureReason::OutOfStock, detail));
    };
    let has_seen_no_price = is_gift && chosen.unit_price_amount_cents.is_none();
    let shown = chosen.unit_price_amount_cents.unwrap_or(unit.unit_price_amount_cents);
    match offered.unit_price_amount_cents {
        Some(price) if price != shown && !has_seen_no_price => {
            let sku = &chosen.sku;
            let detail = format!("variant {sku} costs {price} cents, the shopper saw {shown}");
            Err((FailureReason::PriceChanged, detail))
        }
        price => Ok(price),
    }
}

impl<'a> CheckedUnit<'a> {
    fn gift_card(unit: &'a ConfirmedUnit) -> Self {
        Self { unit, refund_type: RefundType::UnevenExchange, unit_price_amount_cents: None }
    }

    fn variant(unit: &'a ConfirmedUnit, price: Option<i64>) -> Self {
        let sold_for = unit.unit_price_amount_cents;
        let price = price.unwrap_or(sold_for);
        let refund_type =
            if price == sold_for { RefundType::EvenExchange } else { RefundType::UnevenExchange };
        Self { unit, refund_type, unit_price_amount_cents: Some(price) }
    }

    pub fn placed_item(&self) -> PlacedItem {
        PlacedItem {
            unit: self.unit.id.clone(),
            refund_type: self.refund_type,
            unit_price_amount_cents: self.unit_price_amount_cents,
        }
    }
}
