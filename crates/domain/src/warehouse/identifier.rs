//! Identifiers of external systems, which are numbers or strings.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::limits::IDENTIFIER;
use crate::json::{Field, JsonValue, text};

/// A number or a string, sent in the same form as it was received. `7` and `"7"` identify the same
/// thing: lookups compare the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Identifier {
    Number(i64),
    Text(String),
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<&str> for Identifier {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Reads an integer or a non-empty string. A fraction or an exponent would be sent in another form.
pub fn identifier(field: Field<'_>) -> Option<Identifier> {
    match field.value() {
        JsonValue::Integer(number) => Some(Identifier::Number(number)),
        JsonValue::String(_) => text(IDENTIFIER)(field).map(Identifier::Text),
        _ => field.wrong_type("a string or an integer"),
    }
}
