//! Stored orders, as merchants read them.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A stored order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrder {
    pub(crate) identifier: String,
    #[schema(example = "Shipped")]
    pub(crate) status: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    /// The time at which this snapshot was received.
    pub(crate) received_at: DateTime<Utc>,
    /// The order as it was published, including unknown fields.
    #[schema(value_type = Object)]
    pub(crate) document: Box<RawValue>,
}
