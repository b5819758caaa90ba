//! What is returned and how.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::words;

/// One unit of one line of a merchant's order. Units of a line are numbered from 1 and keep their
/// number for good.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct UnitId {
    pub order_identifier: String,
    pub order_line_item_identifier: String,
    #[schema(minimum = 1, maximum = 1000)]
    pub unit: i32,
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { order_identifier, order_line_item_identifier, unit } = self;
        write!(f, "unit {unit} of line {order_line_item_identifier} of order {order_identifier}")
    }
}

/// How a unit comes back.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReturnMethod {
    /// The shopper sends a parcel with a label.
    MailBack,
    /// The shopper hands it over, or it is collected.
    ExpressReturns,
    /// The shopper keeps it.
    CustomerKeep,
}

impl ReturnMethod {
    pub const ALL: [Self; 3] = [Self::MailBack, Self::ExpressReturns, Self::CustomerKeep];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::MailBack => "mail-back",
            Self::ExpressReturns => "express-returns",
            Self::CustomerKeep => "customer-keep",
        }
    }
}

words!(ReturnMethod);
