//! The amounts of refunds, compared with the amounts that were paid.

use std::collections::{HashMap, HashSet};

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
    /// The lines, and `None` for the order, whose excess was reported.
    reported: HashSet<Option<String>>,
}

#[derive(Debug, Default)]
struct LineAmounts {
    refunded: i64,
    units: i64,
}

/// More is refunded than was paid.
struct Excess {
    /// `None` for the order.
    line: Option<String>,
    detail: String,
}

impl RefundedAmounts {
    pub(super) fn new(order_total: Option<i64>, shipping: Option<i64>) -> Self {
        Self { order_total, shipping, ..Self::default() }
    }

    /// Adds a refund. Returns a description if more is refunded than was paid for the refund's units,
    /// for their line or for the order. A line and the order are reported once.
    pub(super) fn add(&mut self, refund: &Refund, lines: &LineIndex) -> Option<String> {
        if refund.is_ignored() {
            return None;
        }
        let of_refund = self.check_units(refund, lines);
        let of_line = self.add_to_line(refund, lines);
        let of_order = self.add_to_order(refund);
        let exceeded = [of_line, of_order].into_iter().flatten();
        // A refund can exceed the amount of its line and of the order. Only the first is described.
        let not_reported: Vec<_> =
            exceeded.filter(|it| self.reported.insert(it.line.clone())).collect();
        match of_refund {
            Some(Excess { line: Some(line), detail }) => {
                let is_new = not_reported.iter().any(|it| it.line.as_ref() == Some(&line));
                (is_new || self.reported.insert(Some(line))).then_some(detail)
            }
            Some(Excess { line: None, detail }) => Some(detail),
            None => not_reported.into_iter().next().map(|it| it.detail),
        }
    }

    /// Compares a refund with the amount paid for its units.
    fn check_units(&self, refund: &Refund, lines: &LineIndex) -> Option<Excess> {
        let amount = refund.total_refund_amount_cents;
        let most = paid_for_units(refund, lines)?.saturating_add(self.shipping?);
        (amount > most).then(|| Excess {
            line: only_line(refund).map(|(line, _)| line.to_owned()),
            detail: format!("refunds {amount}, but {most} was paid for the units and shipping"),
        })
    }

    /// Adds a refund of a single line to the other refunds of that line.
    fn add_to_line(&mut self, refund: &Refund, lines: &LineIndex) -> Option<Excess> {
        let shipping = self.shipping?;
        let (line, units) = only_line(refund)?;
        let sums = self.by_line.entry(line.to_owned()).or_default();
        sums.refunded = sums.refunded.saturating_add(refund.total_refund_amount_cents);
        sums.units += units;
        let refunded = sums.refunded;
        let units = sums.units;
        let most = paid_for(lines, line, units)?.saturating_add(shipping);
        (refunded > most).then(|| Excess {
            line: Some(line.to_owned()),
            detail: format!(
                "the refunds of line {line} make {refunded}, but {most} was paid for its units and shipping"
            ),
        })
    }

    fn add_to_order(&mut self, refund: &Refund) -> Option<Excess> {
        self.refunded = self.refunded.saturating_add(refund.total_refund_amount_cents);
        let refunded = self.refunded;
        let total = self.order_total?;
        (refunded > total).then(|| Excess {
            line: None,
            detail: format!("the refunds of the order make {refunded}, but its total is {total}"),
        })
    }
}

/// The amount that was paid for the units of a refund. `None` when the refund names no units, or more
/// units of a line than were shipped.
fn paid_for_units(refund: &Refund, lines: &LineIndex) -> Option<i64> {
    let mut units_by_line: HashMap<&str, i64> = HashMap::new();
    for item in &refund.refund_line_items {
        *units_by_line.entry(&item.order_item_identifier).or_default() += item.quantity;
    }
    let paid = units_by_line.into_iter().map(|(line, units)| paid_for(lines, line, units));
    let paid: Vec<_> = paid.collect::<Option<_>>()?;
    paid.into_iter().reduce(i64::saturating_add)
}

/// The amount that was paid for units of a line.
fn paid_for(lines: &LineIndex, line: &str, units: i64) -> Option<i64> {
    match lines.find(line) {
        LineLookup::Known(known) => known.paid_for(units),
        LineLookup::Unknown | LineLookup::Invalid => None,
    }
}

/// The line and the units of a refund that names only one line.
fn only_line(refund: &Refund) -> Option<(&str, i64)> {
    let (first, others) = refund.refund_line_items.split_first()?;
    let line = first.order_item_identifier.as_str();
    let units = refund.refund_line_items.iter().map(|item| item.quantity).sum();
    others.iter().all(|other| other.order_item_identifier == line).then_some((line, units))
}
