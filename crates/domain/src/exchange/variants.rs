//! What a merchant says can be had instead of a product, as far as we can read it.
//!
//! One variant that cannot be read does not take the others away from the shopper: it is left out
//! and counted. What is sold out is not offered.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::json::{
    Document, Field, JsonValue, Object, ParseError, any, array, integer, object, text,
};
use crate::schema::json_schema;

/// An answer with more variants than this is not one we can show.
const MOST: usize = 1000;
const LARGEST: i64 = 1_000_000_000_000_000;

/// A variant that a merchant offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferedVariant {
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    #[schema(min_length = 1, max_length = 1000)]
    pub title: String,
    /// What tells it from its siblings, such as size and colour.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub attributes: Vec<Attribute>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub unit_price_amount_cents: Option<i64>,
    /// Unknown means that it can be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity_in_stock: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub product_identifier: Option<String>,
    /// An http or https address; anything else counts as none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// An http or https address; anything else counts as none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_url: Option<String>,
}

/// One thing about a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attribute {
    #[schema(min_length = 1, max_length = 255, example = "size")]
    pub name: String,
    #[schema(max_length = 255, example = "M")]
    pub value: String,
}

/// A merchant's answer, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variants {
    /// Each SKU once, in the merchant's order; none of them sold out.
    pub offered: Vec<OfferedVariant>,
    pub sold_out: usize,
    /// How many could not be read.
    pub unreadable: usize,
}

/// An answer that says nothing about variants.
#[derive(Debug, thiserror::Error)]
pub enum InvalidVariantsResponse {
    #[error("the answer is not JSON")]
    Malformed(#[from] ParseError),
    #[error("the answer is neither an array of variants nor an object with one")]
    NoList,
    #[error("the answer has more than {MOST} variants")]
    TooMany,
    #[error("none of the variants can be read; the first says {0}")]
    Unreadable(String),
}

/// The two shapes that merchants answer with.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the answer is read field by field; this is its schema")]
pub(super) enum VariantsResponse {
    List(Vec<OfferedVariant>),
    Wrapped(WrappedVariants),
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "the answer is read field by field; this is its schema")]
pub(super) struct WrappedVariants {
    variants: Vec<OfferedVariant>,
}

/// What merchants answer with.
pub fn variants_schema() -> Value {
    json_schema::<VariantsResponse>("Exchange variants")
}

impl Variants {
    pub fn read(body: &[u8]) -> Result<Self, InvalidVariantsResponse> {
        let document = Document::parse(body)?;
        let list = match document.value() {
            JsonValue::Array(list) => list,
            wrapping => match wrapping.get("variants") {
                Some(JsonValue::Array(list)) => list,
                _ => return Err(InvalidVariantsResponse::NoList),
            },
        };
        if list.len() > MOST {
            return Err(InvalidVariantsResponse::TooMany);
        }
        let (mut variants, mut known, mut fault) = (Self::default(), HashSet::new(), None);
        for element in list.iter() {
            match Document::from(element.to_value()).read(object(OfferedVariant::read)) {
                Ok(variant) if !known.insert(variant.sku.clone()) => {}
                Ok(variant) if variant.quantity_in_stock.is_some_and(|left| left <= 0) => {
                    variants.sold_out += 1;
                }
                Ok(variant) => variants.offered.push(variant),
                Err(invalid) => {
                    variants.unreadable += 1;
                    fault = fault.or_else(|| invalid.errors.first().map(ToString::to_string));
                }
            }
        }
        match fault {
            Some(fault) if known.is_empty() => Err(InvalidVariantsResponse::Unreadable(fault)),
            _ => Ok(variants),
        }
    }
}

impl OfferedVariant {
    fn read(variant: &Object<'_>) -> Option<Self> {
        let sku = variant.required("sku", text(1..=255));
        let title = variant.required("title", text(1..=1000));
        let attributes = variant.optional("attributes", array(0..=50, object(Attribute::read)));
        let price = variant.optional("unit_price_amount_cents", integer(0..=LARGEST));
        // Below nothing is what a shop has when it sold more than it had.
        let left = variant.optional("quantity_in_stock", integer(-LARGEST..=LARGEST));
        let product_identifier = variant.optional("product_identifier", text(1..=255));
        let image_url = variant.optional("image_url", any);
        let product_url = variant.optional("product_url", any);
        Some(Self {
            sku: sku?,
            title: title?,
            attributes: attributes?.unwrap_or_default(),
            unit_price_amount_cents: price?,
            quantity_in_stock: left?,
            product_identifier: product_identifier?,
            image_url: image_url?.and_then(web_address),
            product_url: product_url?.and_then(web_address),
        })
    }
}

impl Attribute {
    fn read(attribute: &Object<'_>) -> Option<Self> {
        let name = attribute.required("name", text(1..=255));
        let value = attribute.required("value", written);
        Some(Self { name: name?, value: value? })
    }
}

/// A size may be written as a number.
fn written(field: Field<'_>) -> Option<String> {
    match field.value() {
        JsonValue::Bool(boolean) => Some(boolean.to_string()),
        value => match value.as_number() {
            Some(number) => Some(number.to_string()),
            None => text(0..=255)(field),
        },
    }
}

/// An address that may stand in a page: one with another scheme could run as a script.
fn web_address(value: Value) -> Option<String> {
    let Value::String(text) = value else { return None };
    let url = Url::parse(&text).ok()?;
    (text.len() <= 2048 && matches!(url.scheme(), "http" | "https")).then_some(text)
}
