//! Every query of this service.

pub(crate) mod confirmations;
pub(crate) mod orders;
pub(crate) mod search;

use domain::access::MerchantId;
use platform::database::DatabaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A document on its way into a column.
fn written(document: &impl Serialize) -> Result<String, DatabaseError> {
    serde_json::to_string(document)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()).into())
}

/// A document that this service wrote.
fn document<T: DeserializeOwned>(text: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(text).map_err(unreadable)
}

fn merchant_id(text: &str) -> Result<MerchantId, DatabaseError> {
    text.parse().map_err(unreadable)
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> DatabaseError {
    diesel::result::Error::DeserializationError(Box::new(error)).into()
}
