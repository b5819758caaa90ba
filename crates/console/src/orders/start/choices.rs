//! The choices for a return, as the form has them.

use std::collections::BTreeMap;

use domain::returns::UnitId;
use pages::form::Fields;
use serde_json::{Value, json};

use super::offer::ProductOffer;

/// The beginning of the names of the fields with variants.
const VARIANT: &str = "variant:";

/// The name of the field with the variant of a product.
pub(super) fn variant_field(product: &str) -> String {
    format!("{VARIANT}{product}")
}

#[derive(Debug, Default)]
pub(super) struct Choices {
    pub(super) units: Vec<UnitId>,
    pub(super) reason: String,
    pub(super) resolution: String,
    pub(super) method: String,
    pub(super) is_overridden: bool,
    pub(super) note: String,
    /// SKUs by product.
    pub(super) variants: BTreeMap<String, String>,
}

impl Choices {
    pub(super) fn read(form: &Fields) -> Self {
        let units = form.pairs().iter().filter(|(name, _)| name == "unit");
        let variants = form
            .pairs()
            .iter()
            .filter_map(|(name, sku)| Some((name.strip_prefix(VARIANT)?.to_owned(), sku.clone())));
        Self {
            units: units.filter_map(|(_, value)| serde_json::from_str(value).ok()).collect(),
            reason: form.text("reason").to_owned(),
            resolution: form.text("resolution").to_owned(),
            method: form.text("method").to_owned(),
            is_overridden: form.is_checked("override"),
            note: form.text("note").to_owned(),
            variants: variants.collect(),
        }
    }

    pub(super) fn is_exchange(&self) -> bool {
        self.resolution == "exchange"
    }

    /// The chosen variant of a product, as a request has it.
    pub(super) fn variant(&self, offer: &ProductOffer) -> Option<Value> {
        let sku = self.variants.get(&offer.product)?;
        let variant = offer.variants.iter().find(|it| it.sku == *sku)?;
        let mut body = json!({ "sku": sku, "title": variant.title });
        let price = variant.unit_price_amount_cents.map(Value::from);
        let product = variant.product_identifier.clone().map(Value::from);
        let further = [("unit_price_amount_cents", price), ("product_identifier", product)];
        if let Some(body) = body.as_object_mut() {
            let given = further.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
            body.extend(given);
        }
        Some(body)
    }

    /// The request. `by` is the person who overrides the policy.
    pub(super) fn body(&self, by: &str, offers: &[ProductOffer]) -> BTreeMap<&'static str, Value> {
        let unit = |id: &UnitId| {
            let mut unit = json!(id);
            let offer = offers.iter().find(|it| it.units.contains(id));
            if let Some(fields) = unit.as_object_mut() {
                fields.insert("return_reason".to_owned(), self.reason.as_str().into());
                fields.insert("resolution".to_owned(), self.resolution.as_str().into());
                let variant = offer.and_then(|offer| self.variant(offer));
                fields.extend(variant.map(|variant| ("variant".to_owned(), variant)));
            }
            unit
        };
        let mut body = BTreeMap::from([
            ("return_method", self.method.as_str().into()),
            ("units", self.units.iter().map(unit).collect()),
        ]);
        if self.is_overridden {
            body.insert("override", json!({ "by": by, "reason": self.note }));
        }
        body
    }
}
