//! Stored orders, as order-intake shows them.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::json::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A stored order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StoredOrder {
    pub merchant: MerchantId,
    pub identifier: String,
    #[schema(example = "Shipped")]
    pub status: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The time at which this snapshot was received.
    pub received_at: DateTime<Utc>,
    /// The order as it was published, including unknown fields.
    #[schema(value_type = Object)]
    pub document: Box<RawValue>,
}

/// The orders of a merchant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OrderSummary {
    pub merchant: MerchantId,
    /// Number of stored orders, counted up to 100,000.
    pub count: i64,
    /// The `created_at` of the oldest and the newest order; null if there is none.
    pub created_at: Option<TimeSpan>,
    /// The times at which the first and the last order were received; null if there is none.
    pub received_at: Option<TimeSpan>,
    pub last_24_hours: RecentOrders,
    /// The last rejected orders, at most 100, newest first. A message with many invalid orders is shown
    /// with the first ten.
    pub rejections: Vec<RejectedOrder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimeSpan {
    pub oldest: DateTime<Utc>,
    pub newest: DateTime<Utc>,
}

impl TimeSpan {
    /// The time span of these times, if there are any.
    pub fn of(times: impl IntoIterator<Item = DateTime<Utc>>) -> Option<Self> {
        let spans = times.into_iter().map(|time| Self { oldest: time, newest: time });
        spans.reduce(Self::including)
    }

    #[must_use]
    pub fn including(self, other: Self) -> Self {
        Self { oldest: self.oldest.min(other.oldest), newest: self.newest.max(other.newest) }
    }
}

/// The orders of the current hour and the 23 hours before it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RecentOrders {
    pub since: DateTime<Utc>,
    /// Orders of accepted messages.
    pub received: i64,
    /// Received orders that were new or changed.
    pub changed: i64,
    /// Orders of rejected messages.
    pub rejected: i64,
}

/// An order that was rejected, or a message that has no orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RejectedOrder {
    pub rejected_at: DateTime<Utc>,
    /// Absent if the order has no readable identifier, or if the message has no orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order_identifier: Option<String>,
    /// The first ten errors.
    pub errors: Vec<FieldError>,
}
