//! Every query of this service.
//!
//! Lock order: confirmation, ordering key, delivery, message, window of the endpoint, exchange order. A transaction that
//! settles an attempt, places or abandons an exchange order, or erases a shopper's data locks rows in this order.

pub(crate) mod confirmations;
pub(crate) mod erasures;
pub(crate) mod orders;
pub(crate) mod search;

use std::str::FromStr;

use domain::access::MerchantId;
use platform::database::DatabaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn to_json(value: &impl Serialize) -> Result<String, DatabaseError> {
    serde_json::to_string(value)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()).into())
}

/// Parses JSON that this service stored.
fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(text).map_err(unreadable)
}

fn merchant_id(text: &str) -> Result<MerchantId, DatabaseError> {
    text.parse().map_err(unreadable)
}

/// Parses a state that this service stored.
fn parse<T: FromStr<Err = strum::ParseError>>(word: &str) -> Result<T, DatabaseError> {
    word.parse().map_err(unreadable)
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> DatabaseError {
    diesel::result::Error::DeserializationError(Box::new(error)).into()
}
