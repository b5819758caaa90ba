//! What does not fit together and a person should look at. A discrepancy never stops anything.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UnitId;

/// Two parties say different things about a return.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Discrepancy {
    /// A snapshot says that fewer units shipped than are in returns or refunded.
    ShippedQuantityReduced {
        order_identifier: String,
        order_line_item_identifier: String,
        /// What the snapshot says.
        quantity_shipped: i64,
        /// The units that stay because something depends on them.
        units_in_use: i64,
    },
    /// A snapshot changed amounts after they were divided among units.
    AmountsChanged {
        order_identifier: String,
        order_line_item_identifier: String,
        /// What the line says was paid.
        line_paid_cents: i64,
        /// What its units sum to.
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
    /// A refund covers more units of a line than the return it names has left to refund.
    RefundExceedsReturn {
        refund_identifier: String,
        rma_identifier: String,
        order_identifier: String,
        order_line_item_identifier: String,
        /// How many too many.
        units: i64,
    },
    /// A refund covers more units of a line than there are left to refund.
    RefundExceedsLine {
        refund_identifier: String,
        order_identifier: String,
        order_line_item_identifier: String,
        /// How many too many.
        units: i64,
    },
    /// More arrived than the return holds.
    ReceivedOver {
        rma_identifier: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sku: Option<String>,
        quantity: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Something else arrived in the place of a unit, or the unit was not taken.
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
    /// A unit was expected in a parcel and not in it.
    ReceivedShort { rma_identifier: String, unit: UnitId },
}

impl Discrepancy {
    /// Its machine name, as in `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ShippedQuantityReduced { .. } => "shipped_quantity_reduced",
            Self::AmountsChanged { .. } => "amounts_changed",
            Self::RefundOfUnknownReturn { .. } => "refund_of_unknown_return",
            Self::RefundOfCanceledReturn { .. } => "refund_of_canceled_return",
            Self::RefundExceedsReturn { .. } => "refund_exceeds_return",
            Self::RefundExceedsLine { .. } => "refund_exceeds_line",
            Self::ReceivedOver { .. } => "received_over",
            Self::ReceivedWrong { .. } => "received_wrong",
            Self::ReceivedDamaged { .. } => "received_damaged",
            Self::ReceivedShort { .. } => "received_short",
        }
    }

    /// The return it concerns, when it concerns one that exists.
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

    /// The order it concerns, when it is about an order.
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

/// A sentence for people.
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
                "line {line} of order {order} now says that fewer units shipped \
                 ({quantity_shipped}) than are returned or refunded ({units_in_use})"
            ),
            Self::AmountsChanged {
                order_identifier: order,
                order_line_item_identifier: line,
                line_paid_cents,
                units_paid_cents,
            } => write!(
                f,
                "line {line} of order {order} now says {line_paid_cents} cents, but its units \
                 were given {units_paid_cents}"
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
                write!(
                    f,
                    "refund {refund} covers more units than return {name} has left, by {units}"
                )
            }
            Self::RefundExceedsLine { refund_identifier: refund, units, .. } => {
                write!(f, "refund {refund} covers more units than its line has left, by {units}")
            }
            Self::ReceivedOver { rma_identifier, quantity, .. } => {
                write!(f, "more arrived for return {rma_identifier} than it has, by {quantity}")
            }
            Self::ReceivedWrong { rma_identifier, unit, .. } => {
                write!(f, "return {rma_identifier}: {unit} was not what arrived")
            }
            Self::ReceivedDamaged { rma_identifier, unit, .. } => {
                write!(f, "return {rma_identifier}: {unit} arrived damaged")
            }
            Self::ReceivedShort { rma_identifier, unit } => {
                write!(f, "return {rma_identifier}: {unit} was not in its parcel")
            }
        }
    }
}
