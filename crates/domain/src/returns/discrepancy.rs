//! Discrepancies for staff to review. A discrepancy never stops processing.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};
use utoipa::ToSchema;

use super::UnitId;

/// Contradictory statements about a return, for example by merchant and warehouse.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    IntoStaticStr,
    VariantNames,
    thiserror::Error,
)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Discrepancy {
    /// A snapshot has fewer shipped units than are returned or refunded.
    #[error(
        "line {order_line_item_identifier} of order {order_identifier} now has fewer shipped units \
     ({quantity_shipped}) than are returned or refunded ({units_in_use})"
    )]
    ShippedQuantityReduced {
        order_identifier: String,
        order_line_item_identifier: String,
        /// The shipped units in the snapshot.
        quantity_shipped: i64,
        /// The units that are returned or refunded, and therefore kept.
        units_in_use: i64,
    },
    /// A snapshot changed amounts after they were split into units.
    #[error(
        "line {order_line_item_identifier} of order {order_identifier} is now {line_paid_cents} cents, \
     but its units sum to {units_paid_cents} cents"
    )]
    AmountsChanged {
        order_identifier: String,
        order_line_item_identifier: String,
        /// The amount paid for the line.
        line_paid_cents: i64,
        /// The sum of the amounts paid for its units.
        units_paid_cents: i64,
    },
    /// A snapshot changed the amounts of an order whose discount was spread over its units.
    #[error(
        "order {order_identifier} is now {order_paid_cents} cents after its discount, but its units sum \
     to {units_paid_cents} cents"
    )]
    OrderAmountsChanged {
        order_identifier: String,
        /// The amount paid for the shipped lines, after the discount of the order.
        order_paid_cents: i64,
        /// The sum of the amounts paid for the units.
        units_paid_cents: i64,
    },
    /// Refunds exceed the amount paid for their units, for their line or for the order.
    #[error("refund {refund_identifier}: {refunded_cents} cents are refunded of {}order {order_identifier}, \
     but at most {paid_cents} cents were paid", line_of(.order_line_item_identifier.as_deref()))]
    RefundAbovePaid {
        /// The refund that exceeds the amount.
        refund_identifier: String,
        order_identifier: String,
        /// The line, if the amount is that of one line or of units of one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order_line_item_identifier: Option<String>,
        /// The sum of the refunds.
        refunded_cents: i64,
        /// The most that can be refunded, including the shipping of the order.
        paid_cents: i64,
    },
    /// A refund that was matched now names another return. It stays with the first return.
    #[error("refund {refund_identifier} now names return {rma_identifier}, but was matched before")]
    RefundNamesOtherReturn {
        refund_identifier: String,
        order_identifier: String,
        /// The return that the refund names now.
        rma_identifier: String,
    },
    /// The merchant named an exchange order like another order. It has our identifier instead.
    #[error(
        "exchange order {exchange_order_identifier}: {rejected_identifier} is the identifier of another order"
    )]
    ExchangeOrderIdentifierTaken {
        rma_identifier: String,
        /// The original order.
        order_identifier: String,
        /// The identifier in the merchant's response.
        rejected_identifier: String,
        exchange_order_identifier: String,
    },
    /// A refund names a return that does not exist.
    #[error("refund {refund_identifier} names the unknown return {rma_identifier}")]
    RefundOfUnknownReturn {
        refund_identifier: String,
        order_identifier: String,
        rma_identifier: String,
    },
    /// A refund names a return that was canceled.
    #[error("refund {refund_identifier} names the canceled return {rma_identifier}")]
    RefundOfCanceledReturn {
        refund_identifier: String,
        order_identifier: String,
        rma_identifier: String,
    },
    /// A refund pays for more units of a line than the return it names has left to refund.
    #[error(
        "refund {refund_identifier} exceeds the units left in return {rma_identifier} by {units}"
    )]
    RefundExceedsReturn {
        refund_identifier: String,
        rma_identifier: String,
        order_identifier: String,
        order_line_item_identifier: String,
        /// The number of excess units.
        units: i64,
    },
    /// A refund pays for more units of a line than the line has left to refund.
    #[error("refund {refund_identifier} exceeds the units left on its line by {units}")]
    RefundExceedsLine {
        refund_identifier: String,
        order_identifier: String,
        order_line_item_identifier: String,
        /// The number of excess units.
        units: i64,
    },
    /// More units arrived than the return contains.
    #[error("return {rma_identifier}: received {quantity} more than it contains")]
    ReceivedOver {
        rma_identifier: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sku: Option<String>,
        quantity: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Another item arrived in place of a unit, or the warehouse rejected the unit.
    #[error("return {rma_identifier}: another item arrived in place of {unit}")]
    ReceivedWrong {
        rma_identifier: String,
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_sku: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A unit arrived damaged.
    #[error("return {rma_identifier}: {unit} arrived damaged")]
    ReceivedDamaged {
        rma_identifier: String,
        unit: UnitId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A carrier or a warehouse had a unit after its return expired, and the unit could not become part of the return
    /// again: it is in another return, was refunded or is no longer a shipped unit of its order, or the return is closed.
    #[error(
        "return {rma_identifier}: {unit} was sent after the return expired, and cannot be returned again"
    )]
    SentAfterExpiry { rma_identifier: String, unit: UnitId },
    /// A label provider made another label for a parcel that has one, or that needs none. The label is canceled.
    #[error(
        "return {rma_identifier}: the label {tracking_number} of parcel {parcel} is not used, and is canceled"
    )]
    UnusedLabel {
        rma_identifier: String,
        parcel: i32,
        /// The label that is canceled.
        tracking_number: String,
        /// The label that the parcel has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_tracking_number: Option<String>,
    },
    /// A unit was missing from its parcel.
    #[error("return {rma_identifier}: {unit} was missing from its parcel")]
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
            | Self::ExchangeOrderIdentifierTaken { rma_identifier, .. }
            | Self::ReceivedOver { rma_identifier, .. }
            | Self::ReceivedWrong { rma_identifier, .. }
            | Self::ReceivedDamaged { rma_identifier, .. }
            | Self::SentAfterExpiry { rma_identifier, .. }
            | Self::UnusedLabel { rma_identifier, .. }
            | Self::ReceivedShort { rma_identifier, .. } => Some(rma_identifier),
            Self::ShippedQuantityReduced { .. }
            | Self::AmountsChanged { .. }
            | Self::OrderAmountsChanged { .. }
            | Self::RefundAbovePaid { .. }
            | Self::RefundNamesOtherReturn { .. }
            | Self::RefundOfUnknownReturn { .. }
            | Self::RefundExceedsLine { .. } => None,
        }
    }

    /// The order that the discrepancy is about, if any.
    pub fn order_identifier(&self) -> Option<&str> {
        match self {
            Self::ShippedQuantityReduced { order_identifier, .. }
            | Self::AmountsChanged { order_identifier, .. }
            | Self::OrderAmountsChanged { order_identifier, .. }
            | Self::RefundAbovePaid { order_identifier, .. }
            | Self::RefundNamesOtherReturn { order_identifier, .. }
            | Self::ExchangeOrderIdentifierTaken { order_identifier, .. }
            | Self::RefundOfUnknownReturn { order_identifier, .. }
            | Self::RefundOfCanceledReturn { order_identifier, .. }
            | Self::RefundExceedsReturn { order_identifier, .. }
            | Self::RefundExceedsLine { order_identifier, .. } => Some(order_identifier),
            Self::ReceivedWrong { unit, .. }
            | Self::ReceivedDamaged { unit, .. }
            | Self::SentAfterExpiry { unit, .. }
            | Self::ReceivedShort { unit, .. } => Some(&unit.order_identifier),
            Self::ReceivedOver { .. } | Self::UnusedLabel { .. } => None,
        }
    }
}

/// The line in the sentence about an amount, if it is about one line.
fn line_of(line: Option<&str>) -> String {
    line.map(|line| format!("line {line} of ")).unwrap_or_default()
}
