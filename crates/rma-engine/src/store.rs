//! Every query of this service. Row types are private; functions take and return domain types.

pub(crate) mod discrepancies;
pub(crate) mod orders;
pub(crate) mod returns;
pub(crate) mod search;
pub(crate) mod timeline;

use platform::database::DatabaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Serializes a value for a text column.
fn write<T: Serialize>(value: &T) -> Result<String, DatabaseError> {
    serde_json::to_string(value)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()).into())
}

/// Parses a value from a text column.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(text)
        .map_err(|error| diesel::result::Error::DeserializationError(error.into()).into())
}
