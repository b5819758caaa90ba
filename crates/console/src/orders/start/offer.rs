//! The units of an order that can be returned, quotes, and variants, as the services describe them.

use std::{collections::BTreeMap, time::Duration};

use domain::{
    exchange::OfferedVariant,
    merchant::{MethodOffer, ReturnReason},
    returns::{Ineligible, IneligibleCode, RefundFinancials, UnitId},
};
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{SignedIn, error::sentence, record_list::load};

/// The units of a form.
const MAX_UNITS: &str = "500";
/// exchange waits three seconds for a merchant.
const VARIANTS_DEADLINE: Duration = Duration::from_secs(4);

#[derive(Debug, Deserialize)]
pub(super) struct Returnable {
    pub(super) currency: String,
    exchange_possible: bool,
    pub(super) units: Vec<Unit>,
    pub(super) next: Option<String>,
    pub(super) reasons: Vec<ReturnReason>,
    pub(super) methods: Vec<MethodOffer>,
    /// Null if the merchant offers no gift card.
    #[serde(default)]
    gift_card: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    #[serde(flatten)]
    pub(super) id: UnitId,
    pub(super) sku: String,
    pub(super) title: String,
    variant_identifier: Option<String>,
    pub(super) ineligible: Option<Ineligible>,
    pub(super) refund_amount_cents: Option<i64>,
}

/// The variants of a product, for some of the chosen units.
#[derive(Debug)]
pub(super) struct ProductOffer {
    pub(super) product: String,
    pub(super) title: String,
    pub(super) units: Vec<UnitId>,
    pub(super) variants: Vec<OfferedVariant>,
    /// The reason why there is none.
    pub(super) missing: Option<String>,
}

/// The response of exchange about a product.
#[derive(Debug, Deserialize)]
struct Variants {
    variants: Vec<OfferedVariant>,
    detail: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Quote {
    pub(super) quote: String,
    pub(super) possible: bool,
    pub(super) return_shipping_cost_cents: i64,
    pub(super) gift_card_bonus_amount_cents: i64,
    pub(super) shopper_refund_amount_cents: i64,
    pub(super) review_rule: Option<String>,
    pub(super) currency: String,
    pub(super) units: Vec<QuotedUnit>,
}

#[derive(Debug, Deserialize)]
pub(super) struct QuotedUnit {
    #[serde(flatten)]
    pub(super) id: UnitId,
    pub(super) title: String,
    pub(super) refund_financials: RefundFinancials,
    pub(super) ineligible: Option<Ineligible>,
    pub(super) overridden: Option<IneligibleCode>,
}

impl Returnable {
    pub(super) async fn load(
        signed_in: &SignedIn,
        merchant: &str,
        order: &str,
    ) -> Result<Self, ApiError> {
        let path = path!("v1", "orders", order, "returnable");
        load(signed_in, Service::RmaEngine, Some(merchant), &path, &[("limit", MAX_UNITS)]).await
    }

    /// The resolutions that are possible, with their names.
    pub(super) fn resolutions(&self) -> Vec<(&'static str, &'static str)> {
        let has_product = self.units.iter().any(|unit| unit.variant_identifier.is_some());
        let possible = [
            (true, "refund", "Refund"),
            (self.exchange_possible && has_product, "exchange", "Exchange for another variant"),
            (self.exchange_possible && !self.gift_card.is_null(), "gift_card", "Gift card"),
        ];
        let possible = possible.into_iter().filter(|(is_possible, ..)| *is_possible);
        possible.map(|(_, value, label)| (value, label)).collect()
    }

    /// The variants of the products of these units. Units without a product have none: the service refuses them.
    pub(super) async fn offers(
        &self,
        signed_in: &SignedIn,
        merchant: &str,
        chosen: &[UnitId],
    ) -> Vec<ProductOffer> {
        let mut products: BTreeMap<&str, Vec<&Unit>> = BTreeMap::new();
        for unit in self.units.iter().filter(|unit| chosen.contains(&unit.id)) {
            let Some(product) = &unit.variant_identifier else { continue };
            products.entry(product).or_default().push(unit);
        }
        let api = signed_in.api.clone().with_deadline(VARIANTS_DEADLINE);
        let ask = async |(product, units): (&str, Vec<&Unit>)| {
            let path = path!("v1", "variants", product);
            let offer = api.get_for::<Variants>(Service::Exchange, merchant, &path, &[]).await;
            let (variants, missing) = match offer {
                Ok(Variants { variants, detail }) => (variants, detail),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            ProductOffer {
                product: product.to_owned(),
                title: units.first().map(|unit| unit.title.clone()).unwrap_or_default(),
                units: units.iter().map(|unit| unit.id.clone()).collect(),
                missing: variants
                    .is_empty()
                    .then(|| sentence(&missing.unwrap_or_else(|| "no variant is in stock".into()))),
                variants,
            }
        };
        join_all(products.into_iter().map(ask)).await
    }
}
