//! The response of a provider that cannot make a label.

use utoipa::ToSchema;

use crate::json::{Document, JsonValue, Object, printable_text, read_fields, variant};
use crate::printable::printable;

/// Longer details are cut.
const MAX_DETAIL_CHARS: usize = 1_000;

crate::words! {
    /// The reason why no label is possible. Shoppers read a sentence about it.
    pub enum RefusalReason as "snake_case" {
        /// The shopper's address is not complete or does not exist.
        InvalidAddress,
        /// The carrier does not collect parcels at the shopper's address.
        NotServed,
        TooHeavy,
        TooLarge,
        /// The carrier does not take the goods.
        Prohibited,
        Other,
    }
}

impl RefusalReason {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The response of a provider that cannot make a label.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelRefusal {
    pub reason: RefusalReason,
    /// The words of the provider, for operators.
    #[schema(min_length = 1, max_length = 1000)]
    pub detail: Option<String>,
}

impl LabelRefusal {
    /// A refusal for which the provider has no word.
    pub fn other(detail: impl AsRef<str>) -> Self {
        Self { reason: RefusalReason::Other, detail: Some(shown(detail.as_ref())) }
    }

    /// Reads the body of a response with the status 422. `None` if it names no reason: such a response is a failure
    /// like any other. An unknown reason is [`RefusalReason::Other`].
    pub fn from_response(body: &[u8]) -> Option<Self> {
        let document = Document::parse(body).ok()?;
        let text = |key: &str| document.value().get(key).and_then(JsonValue::as_str);
        let word = text("reason")?;
        let detail = text("detail").or_else(|| text("message"));
        Some(match (word.parse(), detail) {
            (Ok(reason), detail) => Self { reason, detail: detail.map(shown) },
            (Err(_), Some(detail)) => Self::other(format!("{word}: {detail}")),
            (Err(_), None) => Self::other(word),
        })
    }

    /// Reads a refusal that a provider reports to Backhaul.
    pub fn read(refusal: &Object<'_>) -> Option<Self> {
        read_fields!(refusal => Self {
            reason: refusal.required("reason", variant),
            detail: refusal.optional("detail", printable_text(1..=MAX_DETAIL_CHARS)),
        })
    }
}

fn shown(text: &str) -> String {
    printable(text).chars().take(MAX_DETAIL_CHARS).collect()
}
