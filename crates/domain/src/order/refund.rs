//! A refund that the merchant has paid.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::limits::tags_schema;

/// The tag of a refund that does not affect returns.
pub const IGNORE_REFUND: &str = "ignore_refund";

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refund {
    /// Unique across all refunds of the merchant. Only the `rma_identifier` of a stored refund can
    /// change.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub total_refund_amount_cents: i64,
    /// Only the lines and units that this refund covers.
    #[schema(max_items = 1000)]
    pub refund_line_items: Vec<RefundLine>,
    #[schema(max_length = 5000)]
    pub note: Option<String>,
    pub created_at: DateTime<Utc>,
    /// The RMA, when the order has several.
    #[schema(max_length = 255)]
    pub rma_identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, schema_with = tags_schema)]
    pub tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefundLine {
    /// Unique across all refunds.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    #[schema(minimum = 1, maximum = 1000)]
    pub quantity: i64,
    /// The identifier of a line of the same order.
    #[schema(min_length = 1, max_length = 255)]
    pub order_item_identifier: String,
}

impl Refund {
    /// Whether the refund does not affect returns.
    pub fn is_ignored(&self) -> bool {
        has_ignore_tag(&self.tags)
    }
}

pub(super) fn has_ignore_tag(tags: &[String]) -> bool {
    tags.iter().any(|tag| tag == IGNORE_REFUND)
}
