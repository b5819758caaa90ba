//! The variants of a product that the merchant has in stock now, and the fields to choose one.

use std::{collections::BTreeSet, time::Duration};

use domain::{exchange::OfferedVariant, printable::printable};
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use serde::Deserialize;

use crate::{basket::Item, page::Page, visit::Visit};

const DEADLINE: Duration = Duration::from_secs(3);

/// The merchant's response.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Offer {
    /// Whether the merchant responded.
    #[serde(default)]
    available: bool,
    #[serde(default)]
    variants: Vec<OfferedVariant>,
}

/// Loads the variants of an item. A merchant that does not respond offers none.
pub(crate) async fn load(visit: &Visit, item: &Item) -> Result<Offer, ApiError> {
    let Some(product) = &item.line.variant_identifier else { return Ok(Offer::default()) };
    let api = visit.api.clone().with_deadline(DEADLINE);
    let path = path!("v1", "variants", product);
    match api.get_for(Service::Exchange, visit.merchant(), &path, &[]).await {
        Err(
            ApiError::Unavailable { .. } | ApiError::TooManyRequests { .. } | ApiError::Invalid(_),
        ) => Ok(Offer::default()),
        result => result,
    }
}

impl Offer {
    /// The variants of which enough are in stock.
    fn in_stock(&self, count: u32) -> impl Iterator<Item = &OfferedVariant> {
        let is_enough = move |stock: i64| stock >= i64::from(count);
        self.variants.iter().filter(move |it| it.quantity_in_stock.is_none_or(is_enough))
    }

    /// The variant with this SKU, if enough are in stock.
    pub(crate) fn variant(&self, sku: &str, count: u32) -> Option<&OfferedVariant> {
        self.in_stock(count).find(|variant| variant.sku == sku)
    }
}

/// A field to choose the variants by one attribute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picker {
    pub(crate) label: String,
    /// Value and label.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) chosen: String,
}

/// A variant in words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The values of the pickers as JSON, for the script.
    pub(crate) values: String,
    pub(crate) text: String,
    pub(crate) image: Option<String>,
}

/// The fields to choose a variant.
#[derive(Debug, Default)]
pub(crate) struct Pickers {
    pub(crate) pickers: Vec<Picker>,
    pub(crate) listed: Vec<Listed>,
    /// The reason why there are no variants.
    pub(crate) none: Option<String>,
    /// The values of each variant and its SKU.
    skus: Vec<(Vec<String>, String)>,
}

impl Pickers {
    /// The fields for an item. The values come from `fields`, else from the chosen variant.
    pub(crate) fn new(page: &Page, item: &Item, offer: &Offer, fields: &Fields) -> Self {
        let variants: Vec<_> = offer.in_stock(item.choice.count).collect();
        if variants.is_empty() {
            let none = match (offer.available, offer.variants.is_empty()) {
                (false, _) => page.t("exchange-unavailable"),
                (true, true) => page.t("exchange-none"),
                (true, false) => page.t1("exchange-too-few", "count", item.choice.count),
            };
            return Self { none: Some(none), ..Self::default() };
        }
        let names = distinguishing(&variants);
        let values = |variant: &OfferedVariant| values(&names, variant);
        let skus: Vec<_> =
            variants.iter().map(|variant| (values(variant), variant.sku.clone())).collect();
        let chosen = skus.iter().find(|(_, sku)| *sku == item.choice.variant);
        let chosen = |index: usize| {
            let typed = fields.text(&field(&item.key(), index)).to_owned();
            let known = chosen.and_then(|(values, _)| values.get(index).cloned());
            if typed.is_empty() { known.unwrap_or_default() } else { typed }
        };
        let pickers = match names.as_slice() {
            [] => vec![Picker::by_title(page, &variants, chosen(0))],
            names => names
                .iter()
                .enumerate()
                .map(|(index, name)| Picker::by_attribute(page, name, index, &skus, chosen(index)))
                .collect(),
        };
        let listed = variants.iter().map(|it| listed(page, item, it, values(it))).collect();
        Self { pickers, listed, none: None, skus }
    }

    /// Whether every field has a value.
    pub(crate) fn is_complete(&self) -> bool {
        self.pickers.iter().all(|picker| !picker.chosen.is_empty())
    }

    /// The SKU of the chosen variant.
    pub(crate) fn sku(&self) -> Option<&str> {
        let is_chosen = |values: &Vec<String>| {
            values.len() == self.pickers.len()
                && values.iter().zip(&self.pickers).all(|(value, picker)| *value == picker.chosen)
        };
        let found = self.skus.iter().find(|(values, _)| is_chosen(values));
        found.map(|(_, sku)| sku.as_str())
    }
}

/// The name of a picker's field.
pub(crate) fn field(key: &str, index: usize) -> String {
    format!("pick{index}.{key}")
}

impl Picker {
    fn by_title(page: &Page, variants: &[&OfferedVariant], chosen: String) -> Self {
        let option =
            |variant: &&OfferedVariant| (variant.sku.trim().to_owned(), printable(&variant.title));
        let options = variants.iter().map(option).collect();
        Self { label: page.t("exchange-variant"), options, chosen }
    }

    fn by_attribute(
        page: &Page,
        name: &str,
        index: usize,
        skus: &[(Vec<String>, String)],
        chosen: String,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let all = skus.iter().filter_map(|(values, _)| values.get(index));
        let mut options: Vec<&String> = all.filter(|value| seen.insert(*value)).collect();
        options.sort_by_cached_key(|value| natural_order(value));
        let options = options.into_iter().map(|value| (value.clone(), printable(value))).collect();
        let label = match name.to_lowercase().as_str() {
            "size" => page.t("exchange-size"),
            "color" | "colour" => page.t("exchange-color"),
            _ => printable(name),
        };
        Self { label, options, chosen }
    }
}

/// Orders values as people do: sizes from small to large, then numbers, then other texts in the order of the
/// merchant.
fn natural_order(value: &str) -> (u8, u64) {
    const SIZES: [&str; 9] = ["XXS", "XS", "S", "M", "L", "XL", "XXL", "XXXL", "XXXXL"];
    let text = value.trim().to_uppercase();
    if let Some(size) = (0..).zip(SIZES).find_map(|(rank, size)| (size == text).then_some(rank)) {
        return (0, size);
    }
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let (whole, rest) = text.split_once(['.', ',']).unwrap_or((&text, ""));
    let tenth = digits(rest).chars().next().and_then(|digit| digit.to_digit(10)).unwrap_or(0);
    match digits(whole).parse::<u64>() {
        Ok(number) => (1, number.saturating_mul(10).saturating_add(tenth.into())),
        Err(_) => (2, 0),
    }
}

/// The names of the attributes in which the variants differ; none if variants have the same attributes.
fn distinguishing(variants: &[&OfferedVariant]) -> Vec<String> {
    let first = variants.first().map(|variant| variant.attributes.as_slice()).unwrap_or_default();
    let value = |variant: &OfferedVariant, name: &str| {
        let found = variant.attributes.iter().find(|attribute| attribute.name == name);
        found.map(|attribute| attribute.value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let differs = |name: &&str| {
        let values: BTreeSet<_> = variants.iter().map(|variant| value(variant, name)).collect();
        values.len() > 1 && !values.contains(&None)
    };
    let names = first.iter().map(|attribute| attribute.name.as_str()).filter(differs);
    let names: Vec<String> = names.map(str::to_owned).collect();
    let combinations: BTreeSet<_> = variants.iter().map(|it| values(&names, it)).collect();
    if combinations.len() == variants.len() { names } else { Vec::new() }
}

/// The values of the pickers that lead to a variant.
fn values(names: &[String], variant: &OfferedVariant) -> Vec<String> {
    if names.is_empty() {
        return vec![variant.sku.trim().to_owned()];
    }
    let value = |name: &String| {
        let found = variant.attributes.iter().find(|attribute| attribute.name == *name);
        found.map(|attribute| attribute.value.trim().to_owned()).unwrap_or_default()
    };
    names.iter().map(value).collect()
}

fn listed(page: &Page, item: &Item, variant: &OfferedVariant, values: Vec<String>) -> Listed {
    let mut parts = vec![printable(&variant.title)];
    parts.extend(variant.quantity_in_stock.map(|stock| page.t1("exchange-stock", "count", stock)));
    parts.extend(price_difference(page, item, variant.unit_price_amount_cents));
    let values = serde_json::Value::from(values).to_string();
    let image = page.portal.image(variant.image_url.as_deref()).map(str::to_owned);
    Listed { values, text: parts.join(" · "), image }
}

/// The price of a variant compared with that of the item; nothing for a giftee.
pub(crate) fn price_difference(page: &Page, item: &Item, price: Option<i64>) -> Option<String> {
    let old = item.line.unit_price?;
    let difference = price.unwrap_or(old).saturating_sub(old);
    let amount = page.money(&difference.saturating_abs(), &item.line.currency);
    Some(match difference {
        0 => page.t("exchange-same-price"),
        1.. => page.t1("exchange-more", "amount", amount),
        _ => page.t1("exchange-less", "amount", amount),
    })
}

#[cfg(test)]
mod tests;
