//! Assignment of a merchant's refunds to units; each refund is matched once.
//!
//! A refund that names a return covers units of that return; any other refund covers units of its
//! line in the oldest open return first. The rest pays for units canceled before shipping, then
//! for units in no return, then for units that ship later.
//!
//! See docs/decisions/refund-matching.md.

mod balances;
mod candidates;

pub use balances::{MatchedRefunds, RefundedQuantities, refunded_quantities};
pub use candidates::{CandidateReturn, CandidateUnit};

use std::collections::BTreeSet;
use std::sync::Arc;

use self::balances::{RefundBalances, UnallocatedQuantity};
use self::candidates::UnreturnedUnits;
use super::{Discrepancy, RefundedUnit, UnitId};
use crate::order::{Order, Refund};

/// The units that the new refunds of an order cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefundMatches {
    pub refunded_units: Vec<RefundedUnit>,
    pub discrepancies: Vec<Discrepancy>,
}

/// Matches the refunds of a snapshot that were not matched before.
///
/// * `returns` are all returns in which units of this order await a refund, and the returns that
///   the new refunds name.
/// * `units` are the shipped units of this order.
pub fn match_refunds<'a>(
    order: &'a Order,
    matched: &'a MatchedRefunds<'a>,
    returns: impl IntoIterator<Item = &'a CandidateReturn>,
    units: &'a [CandidateUnit],
) -> RefundMatches {
    let is_new = |refund: &&Refund| {
        !refund.is_ignored() && !matched.contains_key(refund.identifier.as_str())
    };
    let mut new_refunds = order.refunds.iter().filter(is_new).peekable();
    if new_refunds.peek().is_none() {
        return RefundMatches::default();
    }
    let mut matcher = RefundMatcher::new(order, matched, returns.into_iter().collect(), units);
    for refund in new_refunds {
        matcher.match_refund(refund);
    }
    matcher.matches
}

/// Assigns quantities that matched refunds still have to units in no return. Such units shipped,
/// or left a canceled return, after the refund was matched.
pub fn match_unallocated_refunds(
    order: &Order,
    matched: &MatchedRefunds<'_>,
    units: &[CandidateUnit],
) -> Vec<RefundedUnit> {
    let mut unreturned = UnreturnedUnits::new(units);
    let mut refunded = Vec::new();
    let unallocated = RefundBalances::new(order, matched, units).unallocated;
    for UnallocatedQuantity { refund, line, quantity } in unallocated {
        let refund = Arc::<str>::from(refund);
        refunded.extend(unreturned.take(line, quantity).into_iter().map(|unit| RefundedUnit {
            refund_identifier: Arc::clone(&refund),
            rma_identifier: None,
            unit,
        }));
    }
    refunded
}

/// Matches refunds one after the other and tracks the units that are left.
struct RefundMatcher<'a> {
    order: &'a Order,
    /// Oldest first.
    returns: Vec<&'a CandidateReturn>,
    unreturned: UnreturnedUnits<'a>,
    balances: RefundBalances<'a>,
    refunded: BTreeSet<UnitId>,
    matches: RefundMatches,
}

/// The return that a refund names.
#[derive(Clone, Copy)]
enum NamedReturn<'a> {
    None,
    Unknown(&'a str),
    Known(&'a CandidateReturn),
}

impl<'a> RefundMatcher<'a> {
    fn new(
        order: &'a Order,
        matched: &MatchedRefunds<'a>,
        mut returns: Vec<&'a CandidateReturn>,
        units: &'a [CandidateUnit],
    ) -> Self {
        returns.sort_by_key(|rma| (rma.created_at, &rma.rma_identifier));
        Self {
            order,
            returns,
            unreturned: UnreturnedUnits::new(units),
            balances: RefundBalances::new(order, matched, units),
            refunded: BTreeSet::new(),
            matches: RefundMatches::default(),
        }
    }

    fn match_refund(&mut self, refund: &'a Refund) {
        let named = self.named_return(refund);
        let refund_identifier = refund.identifier.clone();
        let order_identifier = self.order.identifier.clone();
        match named {
            NamedReturn::Unknown(name) => {
                self.matches.discrepancies.push(Discrepancy::RefundOfUnknownReturn {
                    refund_identifier,
                    order_identifier,
                    rma_identifier: name.to_owned(),
                });
            }
            NamedReturn::Known(rma) if rma.is_canceled => {
                self.matches.discrepancies.push(Discrepancy::RefundOfCanceledReturn {
                    refund_identifier,
                    order_identifier,
                    rma_identifier: rma.rma_identifier.clone(),
                });
            }
            NamedReturn::None | NamedReturn::Known(_) => {}
        }
        for (line, quantity) in refunded_quantities(refund) {
            self.match_line(refund, &line, quantity, named);
        }
    }

    fn named_return(&self, refund: &'a Refund) -> NamedReturn<'a> {
        let Some(name) = refund.rma_identifier.as_deref() else { return NamedReturn::None };
        let rma = self.returns.iter().find(|rma| rma.rma_identifier == name);
        rma.map_or(NamedReturn::Unknown(name), |rma| NamedReturn::Known(rma))
    }

    fn match_line(&mut self, refund: &Refund, line: &str, quantity: i64, named: NamedReturn<'a>) {
        let candidates = match named {
            NamedReturn::None => self.returns.clone(),
            NamedReturn::Unknown(_) => Vec::new(),
            NamedReturn::Known(rma) => vec![rma],
        };
        let mut left = quantity;
        for rma in candidates {
            let units = self.unrefunded_units(rma, line, left);
            left -= self.assign(refund, Some(&rma.rma_identifier), units);
        }
        if let NamedReturn::Known(rma) = named
            && left > 0
            && !rma.is_canceled
        {
            self.matches.discrepancies.push(Discrepancy::RefundExceedsReturn {
                refund_identifier: refund.identifier.clone(),
                rma_identifier: rma.rma_identifier.clone(),
                order_identifier: self.order.identifier.clone(),
                order_line_item_identifier: line.to_owned(),
                units: left,
            });
        }
        left -= self.balances.allocate_to_canceled(line, left);
        let units = self.unreturned.take(line, left);
        left -= self.assign(refund, None, units);
        if left > 0 && matches!(named, NamedReturn::None) {
            self.matches.discrepancies.push(Discrepancy::RefundExceedsLine {
                refund_identifier: refund.identifier.clone(),
                order_identifier: self.order.identifier.clone(),
                order_line_item_identifier: line.to_owned(),
                units: left,
            });
        }
    }

    /// Up to `limit` units of a line in a return that await a refund.
    fn unrefunded_units(&self, rma: &CandidateReturn, line: &str, limit: i64) -> Vec<UnitId> {
        let units = rma.unrefunded_units(&self.order.identifier, line);
        let limit = usize::try_from(limit).unwrap_or_default();
        units.filter(|id| !self.refunded.contains(id)).take(limit).collect()
    }

    /// Returns the number of units.
    fn assign(&mut self, refund: &Refund, rma: Option<&str>, units: Vec<UnitId>) -> i64 {
        let count = i64::try_from(units.len()).unwrap_or(i64::MAX);
        let refund_identifier = Arc::<str>::from(refund.identifier.as_str());
        for unit in units {
            self.refunded.insert(unit.clone());
            self.matches.refunded_units.push(RefundedUnit {
                refund_identifier: Arc::clone(&refund_identifier),
                rma_identifier: rma.map(str::to_owned),
                unit,
            });
        }
        count
    }
}
