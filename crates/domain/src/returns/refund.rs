//! Which units a merchant's refunds cover.
//!
//! A refund that names a return covers units of that return; any other covers units of its line in
//! the oldest open return first. What no return claims was paid for units that were canceled
//! before they shipped, and then for units that nobody returned: those can no longer be.
//!
//! The invariant: a unit is covered by one refund, and a refund is looked at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Discrepancy, ReceivingStatus, Resolution, Rma, RmaUnit, Status, UnitId};
use crate::order::{Order, Refund, RefundLine};

/// A unit on the ledger that is in no return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseUnit {
    pub id: UnitId,
    /// The refund that covers it.
    pub refunded_by: Option<String>,
}

/// What the new refunds of an order cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefundMatches {
    pub covered: Vec<CoveredUnit>,
    pub discrepancies: Vec<Discrepancy>,
}

/// A unit that a refund was found to cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredUnit {
    pub refund_identifier: String,
    /// The return that the unit is in, if it is in one.
    pub rma_identifier: Option<String>,
    pub unit: UnitId,
}

/// Matches the refunds of a snapshot that were not seen before.
///
/// * `is_seen` tells by its identifier whether a refund was matched before.
/// * `returns` are all returns with units of this order, and those that its new refunds name.
/// * `loose` are the units of this order that are on the ledger and in no return.
pub fn match_refunds(
    order: &Order,
    is_seen: impl Fn(&str) -> bool,
    returns: &[Rma],
    loose: &[LooseUnit],
) -> RefundMatches {
    let (seen, new): (Vec<&Refund>, Vec<&Refund>) = order
        .refunds
        .iter()
        .filter(|refund| !refund.is_ignored())
        .partition(|refund| is_seen(&refund.identifier));
    if new.is_empty() {
        return RefundMatches::default();
    }
    let mut desk = Desk::open(order, &seen, returns, loose);
    for refund in new {
        desk.settle(refund);
    }
    desk.matches
}

/// What is left to cover while refunds are matched one after the other.
struct Desk<'a> {
    order: &'a Order,
    /// Oldest first.
    returns: Vec<&'a Rma>,
    /// Units in no return and not refunded, by number.
    loose: BTreeSet<&'a UnitId>,
    /// Canceled units of each line that no refund was counted against yet.
    canceled: BTreeMap<&'a str, i64>,
    covered: BTreeSet<UnitId>,
    matches: RefundMatches,
}

impl<'a> Desk<'a> {
    fn open(
        order: &'a Order,
        seen: &[&'a Refund],
        returns: &'a [Rma],
        loose: &'a [LooseUnit],
    ) -> Self {
        let lines = order.items.iter();
        let mut canceled: BTreeMap<_, _> =
            lines.map(|line| (line.identifier.as_str(), line.quantity_canceled)).collect();
        for refund in seen {
            for line in &refund.refund_line_items {
                let covers = |by: &Option<String>, id: &UnitId| {
                    by.as_ref() == Some(&refund.identifier)
                        && id.order_line_item_identifier == line.order_item_identifier
                };
                let units = returns.iter().flat_map(|rma| &rma.units);
                let in_returns = units.filter(|unit| covers(&unit.refunded_by, &unit.id)).count();
                let elsewhere =
                    loose.iter().filter(|unit| covers(&unit.refunded_by, &unit.id)).count();
                let on_units = i64::try_from(in_returns + elsewhere).unwrap_or(i64::MAX);
                if let Some(left) = canceled.get_mut(line.order_item_identifier.as_str()) {
                    *left = (*left - (line.quantity - on_units).max(0)).max(0);
                }
            }
        }
        let mut oldest_first: Vec<_> = returns.iter().collect();
        oldest_first.sort_by_key(|rma| (rma.created_at, &rma.rma_identifier));
        let free = loose.iter().filter(|unit| unit.refunded_by.is_none()).map(|unit| &unit.id);
        Self {
            order,
            returns: oldest_first,
            loose: free.collect(),
            canceled,
            covered: BTreeSet::new(),
            matches: RefundMatches::default(),
        }
    }

    fn settle(&mut self, refund: &Refund) {
        let named = refund.rma_identifier.as_deref();
        let rma = named.map(|name| self.find(name));
        match (named, rma) {
            (Some(name), Some(None)) => {
                self.matches.discrepancies.push(Discrepancy::RefundOfUnknownReturn {
                    refund_identifier: refund.identifier.clone(),
                    order_identifier: self.order.identifier.clone(),
                    rma_identifier: name.to_owned(),
                });
            }
            (Some(name), Some(Some(rma))) if rma.status == Status::Canceled => {
                self.matches.discrepancies.push(Discrepancy::RefundOfCanceledReturn {
                    refund_identifier: refund.identifier.clone(),
                    order_identifier: self.order.identifier.clone(),
                    rma_identifier: name.to_owned(),
                });
            }
            _ => {}
        }
        for line in &refund.refund_line_items {
            self.settle_line(refund, line, rma);
        }
    }

    /// `named` is the return that the refund names, and what was found under that name.
    fn settle_line(&mut self, refund: &Refund, line: &RefundLine, named: Option<Option<&'a Rma>>) {
        let candidates = match named {
            Some(rma) => rma.into_iter().collect(),
            None => self.returns.clone(),
        };
        let mut left = line.quantity;
        for rma in candidates.into_iter().filter(|rma| rma.status.is_open()) {
            left -= self.cover_in(refund, line, rma, left);
        }
        if let Some(Some(rma)) = named.filter(|_| left > 0)
            && rma.status != Status::Canceled
        {
            self.matches.discrepancies.push(Discrepancy::RefundExceedsReturn {
                refund_identifier: refund.identifier.clone(),
                rma_identifier: rma.rma_identifier.clone(),
                order_identifier: self.order.identifier.clone(),
                order_line_item_identifier: line.order_item_identifier.clone(),
                units: left,
            });
        }
        if let Some(canceled) = self.canceled.get_mut(line.order_item_identifier.as_str()) {
            let taken = left.min(*canceled);
            *canceled -= taken;
            left -= taken;
        }
        left -= self.cover_loose(refund, line, left);
        if left > 0 && named.is_none() {
            self.matches.discrepancies.push(Discrepancy::RefundExceedsLine {
                refund_identifier: refund.identifier.clone(),
                order_identifier: self.order.identifier.clone(),
                order_line_item_identifier: line.order_item_identifier.clone(),
                units: left,
            });
        }
    }

    /// Covers up to `most` units of a line in a return; says how many it did.
    fn cover_in(&mut self, refund: &Refund, line: &RefundLine, rma: &Rma, most: i64) -> i64 {
        let mut units: Vec<_> = rma
            .active_units()
            .filter(|unit| self.is_of(&unit.id, line))
            .filter(|unit| unit.refunded_by.is_none() && !self.covered.contains(&unit.id))
            .collect();
        units.sort_by_key(|unit| likelihood(unit));
        let ids: Vec<_> = units.into_iter().map(|unit| unit.id.clone()).collect();
        self.cover(refund, Some(&rma.rma_identifier), ids, most)
    }

    /// The same among units that are in no return.
    fn cover_loose(&mut self, refund: &Refund, line: &RefundLine, most: i64) -> i64 {
        let units = self.loose.iter().filter(|id| self.is_of(id, line));
        let units = units.filter(|id| !self.covered.contains(**id));
        let ids: Vec<_> = units.map(|id| (*id).clone()).collect();
        self.cover(refund, None, ids, most)
    }

    fn cover(&mut self, refund: &Refund, rma: Option<&str>, ids: Vec<UnitId>, most: i64) -> i64 {
        let mut count = 0;
        for unit in ids.into_iter().take(usize::try_from(most).unwrap_or_default()) {
            count += 1;
            self.covered.insert(unit.clone());
            self.matches.covered.push(CoveredUnit {
                refund_identifier: refund.identifier.clone(),
                rma_identifier: rma.map(str::to_owned),
                unit,
            });
        }
        count
    }

    fn is_of(&self, unit: &UnitId, line: &RefundLine) -> bool {
        unit.order_identifier == self.order.identifier
            && unit.order_line_item_identifier == line.order_item_identifier
    }

    fn find(&self, rma_identifier: &str) -> Option<&'a Rma> {
        self.returns.iter().copied().find(|rma| rma.rma_identifier == rma_identifier)
    }
}

/// Which of a line's units a refund is rather for: what the shopper wants refunded before what is
/// exchanged, what arrived before what did not.
fn likelihood(unit: &RmaUnit) -> (bool, bool, i32) {
    let is_exchanged = unit.resolution != Resolution::Refund;
    let is_missing = unit.receiving_status != ReceivingStatus::Received;
    (is_exchanged, is_missing, unit.id.unit)
}
