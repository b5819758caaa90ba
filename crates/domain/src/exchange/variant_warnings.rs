//! Warnings about the parts of a variants response that are not used.

use std::collections::HashSet;

use super::variants::{OfferedVariant, web_url};
use super::{InvalidVariantsResponse, Variants};
use crate::json::{Document, JsonValue, object, unknown_field};

/// The maximum number of warnings.
const MAX_WARNINGS: usize = 20;
/// Longer SKUs are truncated.
const MAX_SKU_CHARS: usize = 64;

/// The fields of a variant.
pub(super) const FIELDS: [&str; 8] = [
    "sku",
    "title",
    "attributes",
    "unit_price_amount_cents",
    "quantity_in_stock",
    "product_identifier",
    "image_url",
    "product_url",
];

impl Variants {
    /// Describes variants that are left out and fields that are ignored, and says if there are no
    /// variants. Each unknown name is reported once.
    pub fn warnings(body: &[u8]) -> Result<Vec<String>, InvalidVariantsResponse> {
        let document = Document::parse(body)?;
        let list = Self::list(&document)?;
        if list.is_empty() {
            return Ok(vec!["the list is empty, so shoppers are offered no variants".to_owned()]);
        }
        let mut warnings = Vec::new();
        let mut skus = HashSet::new();
        let mut unknown = HashSet::new();
        for (number, variant) in (1..).zip(list.iter()) {
            let subject = subject(number, variant);
            match Document::from(variant.to_value()).read(object(OfferedVariant::read)) {
                Ok(read) => {
                    let is_first = skus.insert(read.sku);
                    if !is_first {
                        warnings.push(format!("{subject} is left out: an earlier one has its SKU"));
                    }
                }
                Err(invalid) => {
                    let errors: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
                    warnings.push(format!("{subject} is left out: {}", errors.join("; ")));
                }
            }
            let JsonValue::Object(members) = variant else { continue };
            for (key, value) in members.iter() {
                if !FIELDS.contains(&key) {
                    if unknown.insert(key.to_owned()) {
                        warnings.push(format!("{subject}: {}", unknown_field(key, FIELDS)));
                    }
                } else if key.ends_with("_url")
                    && !value.is_null()
                    && web_url(value.to_value()).is_none()
                {
                    warnings.push(format!("{subject}: `{key}` is not a web URL and is ignored"));
                }
            }
        }
        let omitted = warnings.len().saturating_sub(MAX_WARNINGS);
        if omitted > 0 {
            warnings.truncate(MAX_WARNINGS);
            warnings.push(format!("there are {omitted} more warnings"));
        }
        Ok(warnings)
    }
}

/// The number of a variant, counted from 1, and its SKU if it has one.
fn subject(number: usize, variant: JsonValue<'_>) -> String {
    match variant.get("sku").and_then(JsonValue::as_str) {
        Some(sku) => {
            let sku: String = sku.chars().take(MAX_SKU_CHARS).collect();
            format!("variant {number} ({sku})")
        }
        None => format!("variant {number}"),
    }
}
