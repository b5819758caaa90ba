//! Checks stock again before an exchange order is placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::exchange::{StockCheck, VariantIdentifier, VariantLookups, check_stock};
use domain::returns::Replacement;
use futures_util::future::join_all;

use super::Placer;
use crate::exchange_orders::Stock;
use crate::store::confirmations::Claimed;
use crate::variant_cache::Offer;

/// Result of the stock check of the chosen variants.
pub(super) struct CheckedStock<'a> {
    pub(super) units: StockCheck<'a>,
    /// Reason that a lookup failed.
    pub(super) detail: Option<String>,
    needed: bool,
}

impl CheckedStock<'_> {
    /// The status that is stored with the exchange order.
    pub(super) fn status(&self) -> Stock {
        match (self.needed, self.units.unchecked) {
            (false, _) => Stock::NotNeeded,
            (true, 0) => Stock::Checked,
            (true, _) => Stock::Unchecked,
        }
    }
}

impl Placer {
    /// Looks up every product with a chosen variant. A failed lookup does not stop the order; its
    /// stock is stored as unchecked.
    pub(super) async fn recheck_stock<'a>(&self, claimed: &'a Claimed) -> CheckedStock<'a> {
        let units = &claimed.confirmed.units;
        let chosen =
            units.iter().filter(|unit| matches!(unit.replacement, Replacement::Exchange { .. }));
        let products: BTreeSet<_> =
            chosen.map(|unit| unit.variant_identifier.as_deref().unwrap_or_default()).collect();
        let lookups = join_all(products.iter().map(|product| self.look_up(claimed, product))).await;
        let detail = lookups.iter().find_map(|lookup| lookup.as_ref().err());
        // PostgreSQL cannot store NUL, and a token server may return it in an error.
        let detail = detail.map(|detail| detail.replace('\0', "\u{FFFD}"));
        let lookups: Vec<_> = lookups.into_iter().map(Result::ok).collect();
        let by_product: VariantLookups<'_> = products
            .iter()
            .zip(&lookups)
            .map(|(product, lookup)| (*product, lookup.as_ref().map(|offer| &offer.variants)))
            .collect();
        CheckedStock {
            units: check_stock(units, &by_product),
            detail,
            needed: !products.is_empty(),
        }
    }

    async fn look_up(&self, claimed: &Claimed, product: &str) -> Result<Arc<Offer>, String> {
        let product = VariantIdentifier::parse(product).map_err(|error| error.to_string())?;
        let merchant = &claimed.confirmed.merchant;
        let merchant = self
            .merchants
            .get(merchant)
            .ok_or_else(|| format!("merchant {merchant} is not known"))?;
        let lookup = self.variant_cache.get_since(claimed.received_at, &merchant, &product).await;
        lookup.map_err(|none| format!("{}: {}", none.reason.as_str(), none.detail))
    }
}
