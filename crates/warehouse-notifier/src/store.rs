//! All queries of this service. Use cases open the transactions.

pub(crate) mod drop_shipments;
pub(crate) mod erased_orders;
pub(crate) mod erasures;
pub(crate) mod inbound;
pub(crate) mod outbound;
pub(crate) mod outbound_parts;
pub(crate) mod receipts;
pub(crate) mod received_units;
pub(crate) mod record_keys;

use platform::Timestamp;
use platform::database::DatabaseError;
use uuid::Uuid;

/// Creates a version 7 UUID, so that ids sort by time.
pub(crate) fn new_id(now: Timestamp) -> Uuid {
    let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
    let nanos = now.timestamp_subsec_nanos();
    Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos))
}

/// The condition of a page of ASNs: after `$2` of the merchant `$1`, or of all merchants after both. Beside an equality
/// of the merchant, a comparison of both would read the pages before, too.
fn page_condition(has_merchant: bool) -> &'static str {
    if has_merchant {
        "merchant = $1 AND asn_number > $2"
    } else {
        "(merchant, asn_number) > ($1, $2)"
    }
}

/// Converts a count to the type of its column.
pub(crate) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The error of a column whose value cannot be read.
fn unreadable<E: std::error::Error + Send + Sync + 'static>(error: E) -> DatabaseError {
    diesel::result::Error::DeserializationError(error.into()).into()
}
