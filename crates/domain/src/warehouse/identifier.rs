//! Identifiers of external systems, which are numbers or strings.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::limits::{IDENTIFIER, OPTIONAL_TEXT};
use crate::json::{Field, JsonValue, parsed, text};

const ABOUT: &str = "\
A number or a string, sent in the same form as it was received. `7` and `\"7\"` identify the same
thing: lookups compare the text.";

/// The identifier of a thing in an external system.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Identifier {
    Number(i64),
    Text(String),
}

/// A derived schema cannot limit the length of the string.
impl PartialSchema for Identifier {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        let number = number.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
        let text = ObjectBuilder::new().schema_type(Type::String);
        let text = text.max_length(Some(*IDENTIFIER.end()));
        OneOfBuilder::new().item(number).item(text).description(Some(ABOUT)).into()
    }
}

impl ToSchema for Identifier {}

impl Identifier {
    /// Whether this is an empty string, which some senders write for an absent code.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
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

/// Reads an integer or a string, which can be empty.
pub(super) fn code(field: Field<'_>) -> Option<Identifier> {
    match field.value() {
        JsonValue::String(_) => text(OPTIONAL_TEXT)(field).map(Identifier::Text),
        _ => identifier(field),
    }
}

/// The rule for the numbers of ASNs. They are in URLs, ordering keys and suggested commands.
pub(super) fn plain_asn_number(text: &str) -> Result<String, &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if text.bytes().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("must be letters, digits, hyphens and underscores")
    }
}

/// Reads the number of an ASN, which can be an integer.
pub(super) fn asn_number(field: Field<'_>) -> Option<Identifier> {
    match field.value() {
        JsonValue::String(_) => parsed(IDENTIFIER, plain_asn_number)(field).map(Identifier::Text),
        _ => identifier(field),
    }
}

/// Reads ten letters and digits, or an integer, which can have lost its leading zeros.
pub(super) fn asin(field: Field<'_>) -> Option<Identifier> {
    const RULE: &str = "must be ten letters and digits";
    let plain = |text: &str| match text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => Ok(Identifier::Text(text.to_owned())),
        false => Err(RULE),
    };
    match field.value() {
        JsonValue::String(_) => parsed(10..=10, plain)(field),
        JsonValue::Integer(number) if !(0..=9_999_999_999).contains(&number) => field.invalid(RULE),
        _ => identifier(field),
    }
}
