//! The stock check before an exchange order is placed.

use std::collections::HashMap;

use super::Variants;
use crate::returns::{ConfirmedUnit, Replacement};

/// The variants of each product, by variant identifier; `None` if the merchant did not respond.
pub type VariantLookups<'a> = HashMap<&'a str, Option<&'a Variants>>;

/// Units by whether they can still be exchanged.
#[derive(Debug, Default)]
pub struct StockCheck<'a> {
    pub exchangeable: Vec<&'a ConfirmedUnit>,
    /// Units whose variant is sold out or no longer offered.
    pub out_of_stock: Vec<&'a ConfirmedUnit>,
    /// The number of exchangeable units without a response from the merchant.
    pub unchecked: usize,
}

/// Checks the stock for each unit. Where the merchant states a quantity, the first units get it.
/// Without a response a unit stays exchangeable, because the merchant can still reject the order.
pub fn check_stock<'a>(units: &'a [ConfirmedUnit], lookups: &VariantLookups<'_>) -> StockCheck<'a> {
    let mut check = StockCheck::default();
    let mut reserved = HashMap::<(&str, &str), i64>::new();
    for unit in units {
        let Replacement::Exchange { variant } = &unit.replacement else {
            check.exchangeable.push(unit);
            continue;
        };
        let product = unit.variant_identifier.as_deref().unwrap_or_default();
        let Some(variants) = lookups.get(product).copied().flatten() else {
            check.exchangeable.push(unit);
            check.unchecked += 1;
            continue;
        };
        let offered = variants.offered.iter().find(|offered| offered.sku == variant.sku);
        let reserved = reserved.entry((product, &variant.sku)).or_default();
        match offered {
            Some(offered) if offered.quantity_in_stock.is_none_or(|stock| *reserved < stock) => {
                *reserved += 1;
                check.exchangeable.push(unit);
            }
            _ => check.out_of_stock.push(unit),
        }
    }
    check
}
