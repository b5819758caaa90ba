//! The purpose of a shipment.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use utoipa::ToSchema;

/// The purpose of a shipment, which determines how the destination is identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ShipmentType {
    /// To a location of the merchant's stock transfers, without carrier data.
    StockTransfer,
    /// To another warehouse, by its external identifier.
    Freight,
    /// To a vendor, by its number.
    Vendor,
}

impl ShipmentType {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
