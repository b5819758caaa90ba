//! A merchant's response to an exchange order. Every field is optional.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::{Document, JsonValue};

/// The fields that can hold the identifier of the new order, in order of preference.
const IDENTIFIER_FIELDS: [&str; 3] = ["order_identifier", "identifier", "id"];
const MAX_IDENTIFIER_CHARS: usize = 255;

/// The usable fields of a merchant's response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeOrderResponse {
    pub order_identifier: Option<String>,
    pub amounts: OrderAmounts,
}

/// The amounts that the merchant computed for the new order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderAmounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_amount_cents: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tax_amount_cents: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shipping_amount_cents: Option<i64>,
}

impl ExchangeOrderResponse {
    /// Reads a body. Missing and invalid fields are left out, even if the body is not JSON.
    pub fn read(body: &[u8]) -> Self {
        let Ok(document) = Document::parse(body) else { return Self::default() };
        let amount = |key: &str| document.value().get(key)?.as_i64().filter(|cents| *cents >= 0);
        Self {
            order_identifier: IDENTIFIER_FIELDS
                .into_iter()
                .find_map(|field| identifier(document.value().get(field)?)),
            amounts: OrderAmounts {
                total_amount_cents: amount("total_amount_cents"),
                tax_amount_cents: amount("tax_amount_cents"),
                shipping_amount_cents: amount("shipping_amount_cents"),
            },
        }
    }
}

/// An identifier can be a string or an integer.
fn identifier(value: JsonValue<'_>) -> Option<String> {
    match value {
        JsonValue::String(text) => {
            let is_valid =
                (1..=MAX_IDENTIFIER_CHARS).contains(&text.chars().count()) && !text.contains('\0');
            is_valid.then(|| text.to_owned())
        }
        JsonValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
