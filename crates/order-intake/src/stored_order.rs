//! A stored order, as merchants and staff read it.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A stored order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrder {
    pub(crate) merchant: MerchantId,
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

/// The position of an order in a list.
#[derive(Debug)]
pub(crate) struct OrderKey {
    pub(crate) merchant: MerchantId,
    pub(crate) identifier: String,
}
