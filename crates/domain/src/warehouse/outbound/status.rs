//! The status of an outbound shipment.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};
use utoipa::ToSchema;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Display, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AsnStatus {
    Pending,
    Shipped,
    Delivered,
    Canceled,
}

impl AsnStatus {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn can_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Pending, Self::Shipped | Self::Canceled) | (Self::Shipped, Self::Delivered)
        )
    }

    pub fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Canceled)
    }
}
