//! A merchant's response with the variants of a product.
//!
//! Invalid variants are left out and counted, so that one of them does not hide the others.
//! Variants that are sold out are not offered.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use crate::json::{
    Document, Elements, Field, JsonValue, Object, ParseError, any, array, integer, object, text,
};
use crate::schema::json_schema;

const MAX_VARIANTS: usize = 1000;
const MAX_AMOUNT: i64 = 1_000_000_000_000_000;

/// A variant that a merchant offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferedVariant {
    #[schema(min_length = 1, max_length = 255)]
    pub sku: String,
    #[schema(min_length = 1, max_length = 1000)]
    pub title: String,
    /// The attributes that distinguish the variant, such as size and colour.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub attributes: Vec<Attribute>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub unit_price_amount_cents: Option<i64>,
    /// Absent if unknown; the variant is then offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity_in_stock: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255)]
    pub product_identifier: Option<String>,
    /// An http or https URL; any other value is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// An http or https URL; any other value is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attribute {
    #[schema(min_length = 1, max_length = 255, example = "size")]
    pub name: String,
    #[schema(max_length = 255, example = "M")]
    pub value: String,
}

/// The variants in a merchant's response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variants {
    /// Variants in stock, in the merchant's order, each SKU once.
    pub offered: Vec<OfferedVariant>,
    pub sold_out: usize,
    pub invalid: usize,
}

/// Why a response contains no variants.
#[derive(Debug, thiserror::Error)]
pub enum InvalidVariantsResponse {
    #[error("the response is not JSON")]
    NotJson(#[from] ParseError),
    #[error("the response is neither an array of variants nor an object with one")]
    NoList,
    #[error("the response has more than {MAX_VARIANTS} variants")]
    TooMany,
    #[error("none of the variants is valid; the first error is {0}")]
    NoValidVariant(String),
}

/// The two forms of the response.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the response is read field by field; the type exists for its schema")]
pub(super) enum VariantsResponse {
    List(Vec<OfferedVariant>),
    Wrapped(WrappedVariants),
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "the response is read field by field; the type exists for its schema")]
pub(super) struct WrappedVariants {
    variants: Vec<OfferedVariant>,
}

pub fn variants_schema() -> Value {
    json_schema::<VariantsResponse>("Exchange variants")
}

impl Variants {
    pub fn read(body: &[u8]) -> Result<Self, InvalidVariantsResponse> {
        let document = Document::parse(body)?;
        let list = Self::list(&document)?;
        let mut variants = Self::default();
        let mut skus = HashSet::new();
        let mut first_error = None;
        for element in list.iter() {
            match Document::from(element.to_value()).read(object(OfferedVariant::read)) {
                Ok(variant) => {
                    let is_first = skus.insert(variant.sku.clone());
                    let is_sold_out = variant.quantity_in_stock.is_some_and(|stock| stock <= 0);
                    match (is_first, is_sold_out) {
                        (false, _) => {}
                        (true, true) => variants.sold_out += 1,
                        (true, false) => variants.offered.push(variant),
                    }
                }
                Err(invalid) => {
                    variants.invalid += 1;
                    first_error =
                        first_error.or_else(|| invalid.errors.first().map(ToString::to_string));
                }
            }
        }
        match first_error {
            Some(error) if skus.is_empty() => Err(InvalidVariantsResponse::NoValidVariant(error)),
            _ => Ok(variants),
        }
    }

    /// The variants of either form of the response, valid or not.
    pub(super) fn list(document: &Document) -> Result<Elements<'_>, InvalidVariantsResponse> {
        let list = match document.value() {
            JsonValue::Array(list) => list,
            wrapper => match wrapper.get("variants") {
                Some(JsonValue::Array(list)) => list,
                _ => return Err(InvalidVariantsResponse::NoList),
            },
        };
        if list.len() > MAX_VARIANTS {
            return Err(InvalidVariantsResponse::TooMany);
        }
        Ok(list)
    }
}

impl OfferedVariant {
    pub(super) fn read(variant: &Object<'_>) -> Option<Self> {
        let sku = variant.required("sku", text(1..=255));
        let title = variant.required("title", text(1..=1000));
        let attributes = variant.optional("attributes", array(0..=50, object(Attribute::read)));
        let price = variant.optional("unit_price_amount_cents", integer(0..=MAX_AMOUNT));
        // Shops that oversell report a negative stock.
        let stock = variant.optional("quantity_in_stock", integer(-MAX_AMOUNT..=MAX_AMOUNT));
        let product_identifier = variant.optional("product_identifier", text(1..=255));
        let image_url = variant.optional("image_url", any);
        let product_url = variant.optional("product_url", any);
        Some(Self {
            sku: sku?,
            title: title?,
            attributes: attributes?.unwrap_or_default(),
            unit_price_amount_cents: price?,
            quantity_in_stock: stock?,
            product_identifier: product_identifier?,
            image_url: image_url?.and_then(web_url),
            product_url: product_url?.and_then(web_url),
        })
    }
}

impl Attribute {
    fn read(attribute: &Object<'_>) -> Option<Self> {
        let name = attribute.required("name", text(1..=255));
        let value = attribute.required("value", attribute_value);
        Some(Self { name: name?, value: value? })
    }
}

/// The value of an attribute; a number or boolean is converted to text.
fn attribute_value(field: Field<'_>) -> Option<String> {
    match field.value() {
        JsonValue::Bool(boolean) => Some(boolean.to_string()),
        value => match value.as_number() {
            Some(number) => Some(number.to_string()),
            None => text(0..=255)(field),
        },
    }
}

/// Accepts http and https only, because a URL with another scheme could run as a script in a page.
pub(super) fn web_url(value: Value) -> Option<String> {
    let Value::String(text) = value else { return None };
    let url = Url::parse(&text).ok()?;
    (text.len() <= 2048 && matches!(url.scheme(), "http" | "https")).then_some(text)
}
