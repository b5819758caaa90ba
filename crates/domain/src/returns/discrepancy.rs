//! Discrepancies for staff to review. A discrepancy never stops processing.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use utoipa::ToSchema;

use super::UnitId;

/// Contradictory statements about a return, for example by merchant and warehouse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoStaticStr)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Discrepancy {
    /// A snapshot has fewer shipped units than are returned or refunded.
    ShippedQuantityReduced {
        order_identifier: String,
        order_line_item_identifier: String,
        /// The shipped units in the snapshot.
        quantity_shipped: i64,
        /// The units that are returned or refunded, and therefore kept.
        units_in_use: i64,
    },
    /// A snapshot changed amounts after they were split into units.
    AmountsChanged {
        order_identifier: String,
        order_line_item_identifier: String,
        /// The amount paid for the line.
        line_paid_cents: i64,
        /// The sum of the amounts paid for its units.
        units_paid_cents: i64,
    },
    /// A refund names a return that does not exist.
    RefundOfUnknownReturn {
        refund_identifier: String,
        order_identifier: String,
        rma_identifier: String,
    },
    /// A refund names a return that was canceled.
    RefundOfCanceledReturn {
        refund_identifier: String,
        order_identifier: String,
        rma_identifier: String,
    },
    /// A refund pays for more units of a line than the return it names has left to refund.
    RefundExceedsReturn {
        refund_identifier: String,
        rma_identifier: String,
        order_identifier: String,
        order_line_item_identifier: String,
        /// The number of excess units.
        units: i64,
    },
    /// A refund pays for more units of a line than the line has left to refund.
    RefundExceedsLine {
        refund_identifier: String,
        order_identifier: String,
        order_line_item_identifier: String,
        /// The number of excess units.
        units: i64,
    },
    /// More units arrived than the return contains.
    ReceivedOver {
        rma_identifier: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sku: Option<String>,
        quantity: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Another item arrived in place of a unit, or the warehouse rejected the unit.
    ReceivedWrong {
        rma_identifier: String,
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_sku: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A unit arrived damaged.
    ReceivedDamaged {
        rma_identifier: String,
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A unit was missing from its parcel.
    ReceivedShort { rma_identifier: String, unit: UnitId },
}

impl Discrepancy {
    /// The value of the JSON field `kind`.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// The return that the discrepancy is about, if it exists.
    pub fn rma_identifier(&self) -> Option<&str> {
        match self {
            Self::RefundOfCanceledReturn { rma_identifier, .. }
            | Self::RefundExceedsReturn { rma_identifier, .. }
            | Self::ReceivedOver { rma_identifier, .. }
            | Self::ReceivedWrong { rma_identifier, .. }
            | Self::ReceivedDamaged { rma_identifier, .. }
            | Self::ReceivedShort { rma_identifier, .. } => Some(rma_identifier),
            Self::ShippedQuantityReduced { .. }
            | Self::AmountsChanged { .. }
            | Self::RefundOfUnknownReturn { .. }
            | Self::RefundExceedsLine { .. } => None,
        }
    }

    /// The order that the discrepancy is about, if any.
    pub fn order_identifier(&self) -> Option<&str> {
        match self {
            Self::ShippedQuantityReduced { order_identifier, .. }
            | Self::AmountsChanged { order_identifier, .. }
            | Self::RefundOfUnknownReturn { order_identifier, .. }
            | Self::RefundOfCanceledReturn { order_identifier, .. }
            | Self::RefundExceedsReturn { order_identifier, .. }
            | Self::RefundExceedsLine { order_identifier, .. } => Some(order_identifier),
            Self::ReceivedWrong { unit, .. }
            | Self::ReceivedDamaged { unit, .. }
            | Self::ReceivedShort { unit, .. } => Some(&unit.order_identifier),
            Self::ReceivedOver { .. } => None,
        }
    }
}

impl fmt::Display for Discrepancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShippedQuantityReduced {
                order_identifier: order,
                order_line_item_identifier: line,
                quantity_shipped,
                units_in_use,
            } => write!(
                f,
                "line {line} of order {order} now has fewer shipped units ({quantity_shipped}) than \
                 are returned or refunded ({units_in_use})"
            ),
            Self::AmountsChanged {
                order_identifier: order,
                order_line_item_identifier: line,
                line_paid_cents,
                units_paid_cents,
            } => write!(
                f,
                "line {line} of order {order} is now {line_paid_cents} cents, but its units sum to \
                 {units_paid_cents} cents"
            ),
            Self::RefundOfUnknownReturn { refund_identifier: refund, rma_identifier, .. } => {
                write!(f, "refund {refund} names the unknown return {rma_identifier}")
            }
            Self::RefundOfCanceledReturn { refund_identifier: refund, rma_identifier, .. } => {
                write!(f, "refund {refund} names the canceled return {rma_identifier}")
            }
            Self::RefundExceedsReturn {
                refund_identifier: refund, rma_identifier, units, ..
            } => {
                let name = rma_identifier;
                write!(f, "refund {refund} exceeds the units left in return {name} by {units}")
            }
            Self::RefundExceedsLine { refund_identifier: refund, units, .. } => {
                write!(f, "refund {refund} exceeds the units left on its line by {units}")
            }
            Self::ReceivedOver { rma_identifier, quantity, .. } => {
                write!(f, "return {rma_identifier}: received {quantity} more than it contains")
            }
            Self::ReceivedWrong { rma_identifier, unit, .. } => {
                write!(f, "return {rma_identifier}: another item arrived in place of {unit}")
            }
            Self::ReceivedDamaged { rma_identifier, unit, .. } => {
                write!(f, "return {rma_identifier}: {unit} arrived damaged")
            }
            Self::ReceivedShort { rma_identifier, unit } => {
                write!(f, "return {rma_identifier}: {unit} was missing from its parcel")
            }
        }
    }
}
