//! Where an outbound shipment stands, and where it may go from there.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AsnStatus {
    Pending,
    Shipped,
    Delivered,
    Canceled,
}

impl AsnStatus {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Shipped, Self::Delivered, Self::Canceled];
    pub(super) const WORDS: [(&str, Self); 4] = [
        ("pending", Self::Pending),
        ("shipped", Self::Shipped),
        ("delivered", Self::Delivered),
        ("canceled", Self::Canceled),
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Shipped => "shipped",
            Self::Delivered => "delivered",
            Self::Canceled => "canceled",
        }
    }

    /// Whether a shipment may go from here to there in one step.
    pub fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, Self::Shipped | Self::Canceled) | (Self::Shipped, Self::Delivered)
        )
    }

    /// Whether nothing can follow.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Canceled)
    }
}
