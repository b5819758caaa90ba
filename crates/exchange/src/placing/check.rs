//! Checks stock and prices again before an exchange order is placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::exchange::CheckResult;
use domain::exchange::{VariantCheck, VariantIdentifier, VariantLookups, check_variants};
use domain::returns::Replacement;
use futures_util::future::join_all;

use super::Placer;
use crate::store::confirmations::LeasedConfirmation;
use crate::variant_cache::Offer;

/// Result of the check of the chosen variants.
pub(super) struct CheckedVariants<'a> {
    pub(super) units: VariantCheck<'a>,
    /// Reason that a lookup failed.
    pub(super) detail: Option<String>,
    has_variants: bool,
}

impl CheckedVariants<'_> {
    pub(super) fn stock_check(&self) -> CheckResult {
        self.result(self.units.without_stock)
    }

    pub(super) fn price_check(&self) -> CheckResult {
        self.result(self.units.without_price)
    }

    fn result(&self, unchecked: usize) -> CheckResult {
        match (self.has_variants, unchecked) {
            (false, _) => CheckResult::NotNeeded,
            (true, 0) => CheckResult::Checked,
            (true, _) => CheckResult::Unchecked,
        }
    }
}

impl Placer {
    /// Looks up every product with a chosen variant. A failed lookup does not stop the order; its
    /// stock and price are stored as unchecked.
    pub(super) async fn check<'a>(&self, leased: &'a LeasedConfirmation) -> CheckedVariants<'a> {
        let units = &leased.confirmed.units;
        let chosen =
            units.iter().filter(|unit| matches!(unit.replacement, Replacement::Exchange { .. }));
        let products: BTreeSet<_> =
            chosen.filter_map(|unit| unit.variant_identifier.as_deref()).collect();
        let lookups = join_all(products.iter().map(|product| self.look_up(leased, product))).await;
        let detail = lookups.iter().find_map(|lookup| lookup.as_ref().err());
        // PostgreSQL cannot store NUL, and a token server may return it in an error.
        let detail = detail.map(|detail| detail.replace('\0', "\u{FFFD}"));
        let lookups: Vec<_> = lookups.into_iter().map(Result::ok).collect();
        let by_product: VariantLookups<'_> = products
            .iter()
            .zip(&lookups)
            .map(|(product, lookup)| (*product, lookup.as_ref().map(|offer| &offer.variants)))
            .collect();
        CheckedVariants {
            units: check_variants(units, leased.confirmed.is_gift, &by_product),
            detail,
            has_variants: !products.is_empty(),
        }
    }

    async fn look_up(
        &self,
        leased: &LeasedConfirmation,
        product: &str,
    ) -> Result<Arc<Offer>, String> {
        let product = VariantIdentifier::parse(product).map_err(|error| error.to_string())?;
        let merchant = &leased.confirmed.merchant;
        let merchant = self
            .merchants
            .get(merchant)
            .ok_or_else(|| format!("merchant {merchant} is not known"))?;
        let lookup = self.variant_cache.get_since(leased.received_at, &merchant, &product).await;
        lookup.map_err(|none| format!("{}: {}", none.reason.as_str(), none.detail))
    }
}
