//! Identifiers of other people's systems, which write them as numbers or as strings.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IDENTIFIER;
use crate::json::{Field, JsonValue, text};

/// A number or a string, given back as it came. Both spellings of one number name the same thing:
/// whoever looks for it compares the text.
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

/// A kind of field: an integer, or a string that is not empty. A fraction or an exponent would not
/// go out as it came.
pub fn identifier(field: Field<'_>) -> Option<Identifier> {
    const EXPECTED: &str = "a string or an integer";
    match field.value() {
        JsonValue::Integer(number) => Some(Identifier::Number(number)),
        JsonValue::Large(_) => field.invalid("is outside the 64-bit range"),
        JsonValue::String(_) => text(IDENTIFIER)(field).map(Identifier::Text),
        _ => field.wrong_type(EXPECTED),
    }
}
