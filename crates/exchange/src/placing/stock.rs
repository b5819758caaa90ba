//! Asking for stock again before an order is placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::exchange::{StockCheck, VariantIdentifier, VariantLookups, check_stock};
use domain::returns::Replacement;
use futures_util::future::join_all;

use super::Placer;
use crate::http::exchange_orders::Stock as Word;
use crate::offers::Offer;
use crate::store::confirmations::Claimed;

/// What became of the chosen variants.
pub(super) struct Stock<'a> {
    pub(super) units: StockCheck<'a>,
    /// Why some question was not answered.
    pub(super) detail: Option<String>,
    asked: bool,
}

impl Stock<'_> {
    /// How the record calls it.
    pub(super) fn word(&self) -> Word {
        match (self.asked, self.units.unchecked) {
            (false, _) => Word::NotNeeded,
            (true, 0) => Word::Checked,
            (true, _) => Word::Unchecked,
        }
    }
}

impl Placer {
    /// Asks for every product of which a variant was chosen. Where there is no answer the order is
    /// placed all the same, and the record says so.
    pub(super) async fn ask_stock<'a>(&self, claimed: &'a Claimed) -> Stock<'a> {
        let units = &claimed.confirmed.units;
        let chosen =
            units.iter().filter(|unit| matches!(unit.replacement, Replacement::Exchange { .. }));
        let products: BTreeSet<_> =
            chosen.map(|unit| unit.variant_identifier.as_deref().unwrap_or_default()).collect();
        let answers = join_all(products.iter().map(|product| self.ask(claimed, product))).await;
        let detail = answers.iter().find_map(|answer| answer.as_ref().err());
        // PostgreSQL takes no NUL, whatever a token server says.
        let detail = detail.map(|detail| detail.replace('\0', "\u{FFFD}"));
        let answers: Vec<_> = answers.into_iter().map(Result::ok).collect();
        let asked: VariantLookups<'_> = products
            .iter()
            .zip(&answers)
            .map(|(product, answer)| (*product, answer.as_ref().map(|offer| &offer.variants)))
            .collect();
        Stock { units: check_stock(units, &asked), detail, asked: !products.is_empty() }
    }

    async fn ask(&self, claimed: &Claimed, product: &str) -> Result<Arc<Offer>, String> {
        let product = VariantIdentifier::parse(product).map_err(|error| error.to_string())?;
        let merchant = &claimed.confirmed.merchant;
        let merchant = self
            .merchants
            .get(merchant)
            .ok_or_else(|| format!("merchant {merchant} is not known"))?;
        let answer = self.offers.since(claimed.received_at, &merchant, &product).await;
        answer.map_err(|none| format!("{}: {}", none.reason.as_str(), none.detail))
    }
}
