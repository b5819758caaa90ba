//! What a merchant says when it takes an exchange order. Nothing in it is owed to us.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::{Document, JsonValue};

/// The names under which merchants tell us what they call the new order, best first.
const NAMES: [&str; 3] = ["order_identifier", "identifier", "id"];
const LONGEST: usize = 255;

/// A merchant's answer, as far as we could use it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeOrderResponse {
    pub order_identifier: Option<String>,
    pub amounts: OrderAmounts,
}

/// What the merchant computed, where it said so.
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
    /// An answer that says nothing, or nothing that can be read, is as good as any.
    pub fn read(body: &[u8]) -> Self {
        let Ok(document) = Document::parse(body) else { return Self::default() };
        let amount = |key: &str| document.value().get(key)?.as_i64().filter(|cents| *cents >= 0);
        Self {
            order_identifier: NAMES
                .into_iter()
                .find_map(|name| identifier(document.value().get(name)?)),
            amounts: OrderAmounts {
                total_amount_cents: amount("total_amount_cents"),
                tax_amount_cents: amount("tax_amount_cents"),
                shipping_amount_cents: amount("shipping_amount_cents"),
            },
        }
    }
}

/// Identifiers come as strings and as numbers.
fn identifier(value: JsonValue<'_>) -> Option<String> {
    match value {
        JsonValue::String(text) => {
            let fits = (1..=LONGEST).contains(&text.chars().count()) && !text.contains('\0');
            fits.then(|| text.to_owned())
        }
        JsonValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
