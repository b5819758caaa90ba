//! A refund of an order that was applied to its units.

use domain::order::{Refund, RefundLine};
use domain::returns::{RefundedQuantities, refunded_quantities};
use platform::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AppliedRefund {
    pub(crate) identifier: String,
    pub(crate) quantities: RefundedQuantities,
    pub(crate) amount_cents: i64,
    /// The return that the merchant names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rma_identifier: Option<String>,
    /// Whether the named return does not exist. The refund can then be matched again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_unmatched: bool,
}

impl AppliedRefund {
    pub(super) fn new(refund: &Refund, is_unmatched: bool) -> Self {
        Self {
            identifier: refund.identifier.clone(),
            quantities: refunded_quantities(refund),
            amount_cents: refund.total_refund_amount_cents,
            rma_identifier: refund.rma_identifier.clone(),
            is_unmatched,
        }
    }

    /// The refund with everything that matching needs.
    pub(crate) fn to_refund(&self, created_at: Timestamp) -> Refund {
        let line = |(line, quantity): (&String, &i64)| RefundLine {
            identifier: line.clone(),
            quantity: *quantity,
            order_item_identifier: line.clone(),
        };
        Refund {
            identifier: self.identifier.clone(),
            total_refund_amount_cents: self.amount_cents,
            refund_line_items: self.quantities.iter().map(line).collect(),
            note: None,
            created_at,
            rma_identifier: self.rma_identifier.clone(),
            tags: Vec::new(),
        }
    }
}
