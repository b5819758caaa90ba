//! The amounts of refunds, compared with the amounts that were paid.
//!
//! A refund may include the shipping of the order. Units that have not shipped have no known amount,
//! so refunds of more units than a line has shipped are compared with the total of the order only.

use std::collections::{BTreeMap, BTreeSet};

use super::{Discrepancy, RefundedQuantities};
use crate::order::Order;

/// A refund that counts for the amounts of its order.
#[derive(Debug, Clone, Copy)]
pub struct PaidRefund<'a> {
    pub identifier: &'a str,
    pub amount_cents: i64,
    pub quantities: &'a RefundedQuantities,
}

/// The discrepancies of the refunds in `new`: those above the amount paid for their units, for their
/// line or for the order. A line and the order have one discrepancy, for the first refund above the
/// amount.
///
/// * `refunds` are all refunds of the order, in the order in which they were applied.
/// * `unit_amounts` are the amounts paid for the shipped units of each line.
pub fn check_refund_amounts<'a>(
    order: &Order,
    refunds: impl IntoIterator<Item = PaidRefund<'a>>,
    new: &BTreeSet<&str>,
    unit_amounts: &BTreeMap<String, Vec<i64>>,
) -> Vec<Discrepancy> {
    let mut sums = RefundSums::new(order, unit_amounts);
    let mut discrepancies = Vec::new();
    for refund in refunds {
        let excess = sums.add(&refund);
        discrepancies.extend(excess.filter(|_| new.contains(refund.identifier)));
    }
    discrepancies
}

struct RefundSums<'a> {
    order: &'a Order,
    /// The amounts of each line, the highest first.
    unit_amounts: BTreeMap<&'a str, Vec<i64>>,
    refunded: i64,
    /// Amounts and units of the refunds that name only one line.
    by_line: BTreeMap<&'a str, (i64, i64)>,
    /// The lines, and `None` for the order, of which more is refunded than was paid.
    exceeded: BTreeSet<Option<&'a str>>,
}

impl<'a> RefundSums<'a> {
    fn new(order: &'a Order, unit_amounts: &'a BTreeMap<String, Vec<i64>>) -> Self {
        let sorted = |(line, amounts): (&'a String, &Vec<i64>)| {
            let mut amounts = amounts.clone();
            amounts.sort_unstable_by_key(|amount| std::cmp::Reverse(*amount));
            (line.as_str(), amounts)
        };
        let unit_amounts = unit_amounts.iter().map(sorted).collect();
        Self {
            order,
            unit_amounts,
            refunded: 0,
            by_line: BTreeMap::new(),
            exceeded: BTreeSet::new(),
        }
    }

    fn add(&mut self, refund: &PaidRefund<'a>) -> Option<Discrepancy> {
        self.refunded = self.refunded.saturating_add(refund.amount_cents);
        let line = match refund.quantities.iter().next() {
            Some((line, units)) if refund.quantities.len() == 1 => Some((line.as_str(), *units)),
            _ => None,
        };
        let by_units =
            self.paid_for(refund.quantities.iter().map(|(line, it)| (line.as_str(), *it)));
        let by_line = line.and_then(|(line, units)| {
            let (refunded, refunded_units) = self.by_line.entry(line).or_default();
            *refunded = refunded.saturating_add(refund.amount_cents);
            *refunded_units += units;
            let refunded = *refunded;
            let units = *refunded_units;
            Some((refunded, self.paid_for([(line, units)])?))
        });
        let name = line.map(|(line, _)| line);
        let limits = [
            (name, by_units.map(|paid| (refund.amount_cents, paid))),
            (name, by_line),
            (None, Some((self.refunded, self.order.total_amount_cents))),
        ];
        let above = limits.into_iter().enumerate().filter_map(|(position, (line, limit))| {
            Some((position, line, limit.filter(|(refunded, paid)| refunded > paid)?))
        });
        let mut first = None;
        for (position, line, amounts) in above {
            // A refund of several lines above the amount of its units is reported for itself.
            let is_own = position == 0 && line.is_none();
            if (is_own || self.exceeded.insert(line)) && first.is_none() {
                first = Some((line, amounts));
            }
        }
        first.map(|(line, (refunded_cents, paid_cents))| Discrepancy::RefundAbovePaid {
            refund_identifier: refund.identifier.to_owned(),
            order_identifier: self.order.identifier.clone(),
            order_line_item_identifier: line.map(str::to_owned),
            refunded_cents,
            paid_cents,
        })
    }

    /// The most that was paid for so many units of each line, and for shipping. `None` without units,
    /// or if the lines have not shipped so many.
    fn paid_for<'l>(&self, units: impl IntoIterator<Item = (&'l str, i64)>) -> Option<i64> {
        let mut paid = None;
        for (line, units) in units {
            let amounts = self.unit_amounts.get(line)?.get(..usize::try_from(units).ok()?)?;
            let sum = amounts.iter().fold(0, |sum: i64, it| sum.saturating_add(*it));
            paid = Some(paid.unwrap_or(0_i64).saturating_add(sum));
        }
        let Order { shipping_amount_cents, shipping_tax_amount_cents, .. } = self.order;
        paid.map(|paid| paid.saturating_add(shipping_amount_cents + shipping_tax_amount_cents))
    }
}
