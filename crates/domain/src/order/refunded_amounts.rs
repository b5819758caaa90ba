//! The amounts of refunds, compared with the amounts that were paid.

use std::collections::HashMap;

use super::line_index::{LineIndex, LineLookup};
use super::refund::Refund;

/// The amounts of the refunds of one order so far. Ignored refunds do not count.
#[derive(Debug, Default)]
pub(super) struct RefundedAmounts {
    /// The total of the order. `None` when it is invalid.
    order_total: Option<i64>,
    /// Shipping and its tax, which a refund of any unit may include.
    shipping: Option<i64>,
    refunded: i64,
    /// The refunds that name only one line, by line.
    by_line: HashMap<String, LineAmounts>,
}

#[derive(Debug, Default)]
struct LineAmounts {
    refunded: i64,
    /// The amount that was paid for the refunded units.
    paid: i64,
}

impl RefundedAmounts {
    pub(super) fn new(order_total: Option<i64>, shipping: Option<i64>) -> Self {
        Self { order_total, shipping, ..Self::default() }
    }

    /// Adds a refund. Returns a description if more is refunded than was paid for the refund's units,
    /// for their line or for the order.
    pub(super) fn add(&mut self, refund: &Refund, lines: &LineIndex) -> Option<String> {
        if refund.is_ignored() {
            return None;
        }
        let by_units = self.add_to_units(refund, lines);
        self.refunded += refund.total_refund_amount_cents;
        let refunded = self.refunded;
        let by_order = self.order_total.filter(|total| refunded > *total);
        let by_order = by_order.map(|total| {
            format!("the refunds of the order make {refunded}, but its total is {total}")
        });
        by_units.or(by_order)
    }

    fn add_to_units(&mut self, refund: &Refund, lines: &LineIndex) -> Option<String> {
        let (shipping, paid) = (self.shipping?, paid_for_units(refund, lines)?);
        let amount = refund.total_refund_amount_cents;
        let most = paid.saturating_add(shipping);
        let by_units = (amount > most)
            .then(|| format!("refunds {amount}, but {most} was paid for the units and shipping"));
        let Some(line) = only_line(refund) else { return by_units };
        let sums = self.by_line.entry(line.to_owned()).or_default();
        sums.refunded += amount;
        sums.paid = sums.paid.saturating_add(paid);
        let (refunded, most) = (sums.refunded, sums.paid.saturating_add(shipping));
        let by_line = (refunded > most).then(|| {
            format!("the refunds of line {line} make {refunded}, but {most} was paid for its units and shipping")
        });
        by_units.or(by_line)
    }
}

/// The amount that was paid for the units of a refund. `None` when the refund names no units, or one
/// of its lines was not shipped.
fn paid_for_units(refund: &Refund, lines: &LineIndex) -> Option<i64> {
    let items = refund.refund_line_items.iter();
    let paid: Option<Vec<_>> = items
        .map(|item| match lines.find(&item.order_item_identifier) {
            LineLookup::Known(units) => units.paid_for(item.quantity),
            LineLookup::Unknown | LineLookup::Invalid => None,
        })
        .collect();
    paid.filter(|paid| !paid.is_empty())
        .map(|paid| paid.into_iter().fold(0, |sum: i64, amount| sum.saturating_add(amount)))
}

/// The line of a refund that names only one.
fn only_line(refund: &Refund) -> Option<&str> {
    let (first, others) = refund.refund_line_items.split_first()?;
    let line = &first.order_item_identifier;
    others.iter().all(|other| other.order_item_identifier == *line).then_some(line)
}
