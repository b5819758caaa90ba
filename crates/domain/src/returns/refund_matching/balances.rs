//! Quantities that refunds paid and that no unit accounts for yet.

use std::collections::BTreeMap;

use super::candidates::CandidateUnit;
use crate::order::{Order, Refund};

/// The number of units of each line that a refund paid.
pub type RefundedQuantities = BTreeMap<String, i64>;

/// The refunds that were matched before, by identifier.
pub type MatchedRefunds<'a> = BTreeMap<&'a str, &'a RefundedQuantities>;

/// The number of units of each line that a refund pays.
pub fn refunded_quantities(refund: &Refund) -> RefundedQuantities {
    let mut quantities = RefundedQuantities::new();
    for line in &refund.refund_line_items {
        *quantities.entry(line.order_item_identifier.clone()).or_default() += line.quantity;
    }
    quantities
}

/// The balances of an order's lines after all matched refunds.
pub(super) struct RefundBalances<'a> {
    /// Canceled units of each line that no refund has paid for yet.
    canceled: BTreeMap<&'a str, i64>,
    pub(super) unallocated: Vec<UnallocatedQuantity<'a>>,
}

/// Units of a line that a refund paid and that are neither shipped nor canceled yet.
pub(super) struct UnallocatedQuantity<'a> {
    pub(super) refund: &'a str,
    pub(super) line: &'a str,
    pub(super) quantity: i64,
}

impl<'a> RefundBalances<'a> {
    pub(super) fn new(
        order: &'a Order,
        matched: &MatchedRefunds<'a>,
        units: &[CandidateUnit],
    ) -> Self {
        let mut refunded: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for unit in units {
            if let Some(refund) = &unit.refunded_by {
                let line = unit.id.order_line_item_identifier.as_str();
                *refunded.entry((&**refund, line)).or_default() += 1;
            }
        }
        let lines = order.items.iter();
        let canceled =
            lines.map(|line| (line.identifier.as_str(), line.quantity_canceled)).collect();
        let mut balances = Self { canceled, unallocated: Vec::new() };
        for (refund, quantities) in matched {
            for (line, paid) in *quantities {
                let refunded = refunded.get(&(*refund, line.as_str())).copied().unwrap_or_default();
                let left = (paid - refunded).max(0);
                let quantity = left - balances.allocate_to_canceled(line, left);
                balances.unallocated.push(UnallocatedQuantity { refund, line, quantity });
            }
        }
        balances
    }

    /// Allocates up to `limit` units to canceled units of a line, and returns how many.
    pub(super) fn allocate_to_canceled(&mut self, line: &str, limit: i64) -> i64 {
        let Some(canceled) = self.canceled.get_mut(line) else { return 0 };
        let allocated = limit.min(*canceled);
        *canceled -= allocated;
        allocated
    }
}
