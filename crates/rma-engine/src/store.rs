//! Every query of this service. Rows stay private; what goes in and comes out is the rules' own.

pub(crate) mod discrepancies;
pub(crate) mod orders;
pub(crate) mod returns;
pub(crate) mod search;
pub(crate) mod timeline;

use platform::database::DatabaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A document on its way into a column.
fn write<T: Serialize>(value: &T) -> Result<String, DatabaseError> {
    serde_json::to_string(value)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()).into())
}

/// A document out of a column.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(text)
        .map_err(|error| diesel::result::Error::DeserializationError(error.into()).into())
}
