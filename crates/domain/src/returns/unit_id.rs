//! The identity of one unit of an order line.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::{Object, integer, text};

/// One unit of one line of a merchant's order. Units of a line are numbered from 1, and a number
/// never changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct UnitId {
    #[schema(min_length = 1, max_length = 255)]
    pub order_identifier: String,
    #[schema(min_length = 1, max_length = 255)]
    pub order_line_item_identifier: String,
    #[schema(minimum = 1, maximum = 1000)]
    pub unit: i32,
}

impl UnitId {
    pub(super) const FIELDS: [&str; 3] = ["order_identifier", "order_line_item_identifier", "unit"];

    /// Reads the three fields that identify a unit.
    pub fn read(unit: &Object<'_>) -> Option<Self> {
        let order = unit.required("order_identifier", text(1..=255));
        let line = unit.required("order_line_item_identifier", text(1..=255));
        let number = unit.required("unit", integer(1..=1_000));
        Some(Self { order_identifier: order?, order_line_item_identifier: line?, unit: number? })
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { order_identifier, order_line_item_identifier, unit } = self;
        write!(f, "unit {unit} of line {order_line_item_identifier} of order {order_identifier}")
    }
}
