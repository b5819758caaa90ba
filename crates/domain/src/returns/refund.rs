//! Which units a merchant's refunds cover.
//!
//! A refund that names a return covers units of that return; any other covers units of its line in
//! the oldest open return first. What no return claims was paid for units that were canceled
//! before they shipped, and then for units that nobody returned: those can no longer be. What is
//! left even then is for the units that ship next.
//!
//! The invariant: a unit is covered by one refund, and a refund is looked at once. What it paid
//! counts from then on, also when a newer snapshot leaves it out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::{Discrepancy, ReceivingStatus, Resolution, Rma, RmaStatus, RmaUnit, UnitId};
use crate::order::{Order, Refund};

/// How many units of each line a refund paid.
pub type RefundedQuantities = BTreeMap<String, i64>;

/// What each refund that was matched before paid, by its identifier.
pub type MatchedRefunds<'a> = BTreeMap<&'a str, &'a RefundedQuantities>;

/// A unit on the ledger, as refunds see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateUnit {
    pub id: UnitId,
    /// Whether it is in a return that was not canceled.
    pub is_returned: bool,
    /// The refund that covers it.
    pub refunded_by: Option<Arc<str>>,
}

/// A return, as refunds see it: many times smaller than the return itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateReturn {
    pub rma_identifier: String,
    created_at: DateTime<Utc>,
    is_canceled: bool,
    /// Its units that wait for a refund, by order and line.
    waiting: BTreeMap<String, BTreeMap<String, BTreeSet<Waiting>>>,
}

/// Which of a line's units a refund is rather for, the likeliest first: what the shopper wants
/// refunded before what is exchanged, what arrived before what did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    is_exchanged: bool,
    is_missing: bool,
    unit: i32,
}

impl CandidateReturn {
    /// With its units of the orders that matter.
    pub fn new(rma: &Rma, does_matter: impl Fn(&str) -> bool) -> Self {
        let mut waiting: BTreeMap<_, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
        let units = rma
            .active_units()
            .filter(|unit| unit.refunded_by.is_none() && does_matter(&unit.id.order_identifier));
        for unit in units.filter(|_| rma.status.is_open()) {
            let UnitId { order_identifier, order_line_item_identifier, .. } = unit.id.clone();
            let lines = waiting.entry(order_identifier).or_default();
            lines.entry(order_line_item_identifier).or_default().insert(Waiting::new(unit));
        }
        Self {
            rma_identifier: rma.rma_identifier.clone(),
            created_at: rma.created_at,
            is_canceled: rma.status == RmaStatus::Canceled,
            waiting,
        }
    }

    /// Whether units of this order wait for a refund.
    pub fn awaits_refund(&self, order: &str) -> bool {
        self.waiting.contains_key(order)
    }

    /// Notes that its unit waits no longer.
    pub fn mark_refunded(&mut self, id: &UnitId) {
        let lines = self.waiting.get_mut(&id.order_identifier);
        let units = lines.and_then(|lines| lines.get_mut(&id.order_line_item_identifier));
        if let Some(units) = units {
            units.retain(|it| it.unit != id.unit);
        }
    }
}

impl Waiting {
    fn new(unit: &RmaUnit) -> Self {
        Self {
            is_exchanged: unit.resolution != Resolution::Refund,
            is_missing: unit.receiving_status != ReceivingStatus::Received,
            unit: unit.id.unit,
        }
    }
}

/// What the new refunds of an order cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefundMatches {
    pub refunded_units: Vec<RefundedUnit>,
    pub discrepancies: Vec<Discrepancy>,
}

/// A unit that a refund was found to cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundedUnit {
    pub refund_identifier: Arc<str>,
    /// The return that the unit is in, if it is in one.
    pub rma_identifier: Option<String>,
    pub unit: UnitId,
}

/// Matches those refunds of a snapshot that were not matched before.
///
/// * `returns` are all returns in which units of this order wait, and those that its new refunds
///   name.
/// * `units` are the units of this order that are on the ledger.
pub fn match_refunds<'a>(
    order: &'a Order,
    before: &'a MatchedRefunds<'a>,
    returns: impl IntoIterator<Item = &'a CandidateReturn>,
    units: &'a [CandidateUnit],
) -> RefundMatches {
    let mut new = new_refunds(order, before).peekable();
    if new.peek().is_none() {
        return RefundMatches::default();
    }
    let mut desk = RefundMatcher::open(order, before, returns.into_iter().collect(), units);
    for refund in new {
        desk.settle(refund);
    }
    desk.matches
}

/// What refunds that were matched before paid beyond the units that there were then goes to units
/// that are there now and in no return: they shipped since, or their return was canceled.
pub fn match_unallocated_refunds(
    order: &Order,
    before: &MatchedRefunds<'_>,
    units: &[CandidateUnit],
) -> Vec<RefundedUnit> {
    let mut loose = UnreturnedUnits::among(units);
    let mut covered = Vec::new();
    for Remainder { refund, line, units } in RefundBalances::of(order, before, units).remainders {
        let name = Arc::<str>::from(refund);
        for unit in loose.take(line, units) {
            let refund_identifier = Arc::clone(&name);
            covered.push(RefundedUnit { refund_identifier, rma_identifier: None, unit });
        }
    }
    covered
}

fn new_refunds<'o>(
    order: &'o Order,
    before: &MatchedRefunds<'_>,
) -> impl Iterator<Item = &'o Refund> {
    let refunds = order.refunds.iter();
    refunds
        .filter(|refund| !refund.is_ignored() && !before.contains_key(refund.identifier.as_str()))
}

/// How many units of each line a refund pays.
pub fn refunded_quantities(refund: &Refund) -> RefundedQuantities {
    let mut paid = RefundedQuantities::new();
    for line in &refund.refund_line_items {
        *paid.entry(line.order_item_identifier.clone()).or_default() += line.quantity;
    }
    paid
}

/// What refunds that were matched before came to.
struct RefundBalances<'a> {
    /// Canceled units of each line that no refund was counted against yet.
    canceled: BTreeMap<&'a str, i64>,
    remainders: Vec<Remainder<'a>>,
}

/// What a refund paid for a line and covers neither a unit nor a canceled one.
struct Remainder<'a> {
    refund: &'a str,
    line: &'a str,
    units: i64,
}

impl<'a> RefundBalances<'a> {
    fn of(order: &'a Order, before: &MatchedRefunds<'a>, units: &[CandidateUnit]) -> Self {
        let mut on_units: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for unit in units {
            if let Some(refund) = &unit.refunded_by {
                let line = unit.id.order_line_item_identifier.as_str();
                *on_units.entry((&**refund, line)).or_default() += 1;
            }
        }
        let lines = order.items.iter();
        let canceled =
            lines.map(|line| (line.identifier.as_str(), line.quantity_canceled)).collect();
        let mut accounts = Self { canceled, remainders: Vec::new() };
        for (refund, paid) in before {
            for (line, paid) in *paid {
                let on_units = on_units.get(&(*refund, line.as_str())).copied().unwrap_or_default();
                let left = (paid - on_units).max(0);
                let units = left - accounts.count_canceled(line, left);
                accounts.remainders.push(Remainder { refund, line, units });
            }
        }
        accounts
    }

    /// Counts up to `most` units against the canceled ones of a line; says how many it did.
    fn count_canceled(&mut self, line: &str, most: i64) -> i64 {
        let Some(canceled) = self.canceled.get_mut(line) else { return 0 };
        let taken = most.min(*canceled);
        *canceled -= taken;
        taken
    }
}

/// The units of each line that are in no return and not refunded.
struct UnreturnedUnits<'a>(BTreeMap<&'a str, BTreeSet<&'a UnitId>>);

impl<'a> UnreturnedUnits<'a> {
    fn among(units: &'a [CandidateUnit]) -> Self {
        let mut loose: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for unit in units.iter().filter(|it| !it.is_returned && it.refunded_by.is_none()) {
            let line = unit.id.order_line_item_identifier.as_str();
            loose.entry(line).or_default().insert(&unit.id);
        }
        Self(loose)
    }

    /// Takes up to `most` units of a line, the lowest numbers first.
    fn take(&mut self, line: &str, most: i64) -> Vec<UnitId> {
        let Some(units) = self.0.get_mut(line) else { return Vec::new() };
        let most = usize::try_from(most).unwrap_or_default();
        std::iter::from_fn(|| units.pop_first()).take(most).cloned().collect()
    }
}

/// What is left to cover while refunds are matched one after the other.
struct RefundMatcher<'a> {
    order: &'a Order,
    /// Oldest first.
    returns: Vec<&'a CandidateReturn>,
    loose: UnreturnedUnits<'a>,
    accounts: RefundBalances<'a>,
    covered: BTreeSet<UnitId>,
    matches: RefundMatches,
}

impl<'a> RefundMatcher<'a> {
    fn open(
        order: &'a Order,
        before: &MatchedRefunds<'a>,
        mut returns: Vec<&'a CandidateReturn>,
        units: &'a [CandidateUnit],
    ) -> Self {
        returns.sort_by_key(|rma| (rma.created_at, &rma.rma_identifier));
        Self {
            order,
            returns,
            loose: UnreturnedUnits::among(units),
            accounts: RefundBalances::of(order, before, units),
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
            (Some(name), Some(Some(rma))) if rma.is_canceled => {
                self.matches.discrepancies.push(Discrepancy::RefundOfCanceledReturn {
                    refund_identifier: refund.identifier.clone(),
                    order_identifier: self.order.identifier.clone(),
                    rma_identifier: name.to_owned(),
                });
            }
            _ => {}
        }
        for (line, units) in refunded_quantities(refund) {
            self.settle_line(refund, &line, units, rma);
        }
    }

    /// `named` is the return that the refund names, and what was found under that name.
    fn settle_line(
        &mut self,
        refund: &Refund,
        line: &str,
        units: i64,
        named: Option<Option<&'a CandidateReturn>>,
    ) {
        let candidates = match named {
            Some(rma) => rma.into_iter().collect(),
            None => self.returns.clone(),
        };
        let mut left = units;
        for rma in candidates {
            let units = self.waiting_in(rma, line, left);
            left -= self.cover(refund, Some(&rma.rma_identifier), units);
        }
        if let Some(Some(rma)) = named.filter(|_| left > 0)
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
        left -= self.accounts.count_canceled(line, left);
        let units = self.loose.take(line, left);
        left -= self.cover(refund, None, units);
        if left > 0 && named.is_none() {
            self.matches.discrepancies.push(Discrepancy::RefundExceedsLine {
                refund_identifier: refund.identifier.clone(),
                order_identifier: self.order.identifier.clone(),
                order_line_item_identifier: line.to_owned(),
                units: left,
            });
        }
    }

    /// Up to `most` units of a line that wait for a refund in a return, the likeliest first.
    fn waiting_in(&self, rma: &CandidateReturn, line: &str, most: i64) -> Vec<UnitId> {
        let order = &self.order.identifier;
        let units = rma.waiting.get(order).and_then(|lines| lines.get(line));
        let ids = units.into_iter().flatten().map(|it| UnitId {
            order_identifier: order.clone(),
            order_line_item_identifier: line.to_owned(),
            unit: it.unit,
        });
        let most = usize::try_from(most).unwrap_or_default();
        ids.filter(|id| !self.covered.contains(id)).take(most).collect()
    }

    /// Says how many units there were.
    fn cover(&mut self, refund: &Refund, rma: Option<&str>, units: Vec<UnitId>) -> i64 {
        let count = i64::try_from(units.len()).unwrap_or(i64::MAX);
        let name = Arc::<str>::from(refund.identifier.as_str());
        for unit in units {
            self.covered.insert(unit.clone());
            self.matches.refunded_units.push(RefundedUnit {
                refund_identifier: Arc::clone(&name),
                rma_identifier: rma.map(str::to_owned),
                unit,
            });
        }
        count
    }

    fn find(&self, rma_identifier: &str) -> Option<&'a CandidateReturn> {
        self.returns.iter().copied().find(|rma| rma.rma_identifier == rma_identifier)
    }
}
