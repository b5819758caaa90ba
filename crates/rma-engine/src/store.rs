//! Every query of this service. Functions take and return domain types; a row that needs no conversion is used
//! as it is, all others are private.
//!
//! See docs/decisions/return-storage.md.

pub(crate) mod counts;
pub(crate) mod deadlines;
pub(crate) mod deep_links;
pub(crate) mod discrepancies;
pub(crate) mod discrepancy_search;
pub(crate) mod erased_orders;
pub(crate) mod erasures;
pub(crate) mod exchange_orders;
pub(crate) mod guarantees;
pub(crate) mod locked_returns;
pub(crate) mod lookups;
pub(crate) mod notices;
pub(crate) mod order_rows;
pub(crate) mod orders;
pub(crate) mod return_rows;
pub(crate) mod returns;
pub(crate) mod search;
pub(crate) mod timeline;
pub(crate) mod units;

use platform::database::DatabaseError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Condition of the indexes for lists of all merchants. Queries about one merchant do not have it, so
/// PostgreSQL cannot use these indexes for them and read the rows of other merchants.
const ALL_MERCHANTS: &str = "merchant IS DISTINCT FROM ''";

/// The documents and messages of one batch of requests. A batch keeps requests waiting, so it is smaller than
/// that of a background task ([`platform::MAX_BATCH_BYTES`]).
pub(crate) const MAX_REQUEST_BATCH_BYTES: usize = 4 << 20;

/// Serializes a value for a text column.
fn write<T: Serialize>(value: &T) -> Result<String, DatabaseError> {
    serde_json::to_string(value)
        .map_err(|error| diesel::result::Error::SerializationError(error.into()).into())
}

/// Parses a value from a text column.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, DatabaseError> {
    serde_json::from_str(text).map_err(unreadable)
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> DatabaseError {
    diesel::result::Error::DeserializationError(Box::new(error)).into()
}

platform::rows! {
    /// A return as JSON.
    struct DocumentRow {
        document: String,
    }
}
