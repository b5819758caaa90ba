//! What is left of a choice when stock is asked for again.

use std::collections::HashMap;

use super::Variants;
use crate::returns::{ConfirmedUnit, Replacement};

/// What the merchant said about the variants of one product when it was asked again; `None` when
/// it gave no answer.
pub type VariantLookups<'a> = HashMap<&'a str, Option<&'a Variants>>;

/// Units by whether they can still be exchanged.
#[derive(Debug, Default)]
pub struct StockCheck<'a> {
    pub exchangeable: Vec<&'a ConfirmedUnit>,
    /// What was chosen for these is gone.
    pub out_of_stock: Vec<&'a ConfirmedUnit>,
    /// How many of those kept are kept without an answer.
    pub unchecked: usize,
}

/// Keeps what can still be had. Where the merchant says how many there are, the first units get
/// them. A unit whose question was not answered is kept: the shopper was promised it, and the
/// merchant has the last word when the order comes.
pub fn check_stock<'a>(units: &'a [ConfirmedUnit], asked: &VariantLookups<'_>) -> StockCheck<'a> {
    let mut sorted = StockCheck::default();
    let mut taken = HashMap::<(&str, &str), i64>::new();
    for unit in units {
        let Replacement::Exchange { variant } = &unit.replacement else {
            sorted.exchangeable.push(unit);
            continue;
        };
        let product = unit.variant_identifier.as_deref().unwrap_or_default();
        let Some(variants) = asked.get(product).copied().flatten() else {
            sorted.exchangeable.push(unit);
            sorted.unchecked += 1;
            continue;
        };
        let offered = variants.offered.iter().find(|offered| offered.sku == variant.sku);
        let taken = taken.entry((product, &variant.sku)).or_default();
        match offered {
            Some(offered) if offered.quantity_in_stock.is_none_or(|left| *taken < left) => {
                *taken += 1;
                sorted.exchangeable.push(unit);
            }
            _ => sorted.out_of_stock.push(unit),
        }
    }
    sorted
}
