//! The shipped units of one order with their amounts, the refunds that were applied, and the units
//! that each refund covers. `domain::returns` decides how they change.

mod applied_refund;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use domain::order::{Order, Refund};
use domain::returns::{
    AddedUnit, Amounts, CandidateUnit, Discrepancy, LineChanges, MatchedRefunds, PaidRefund,
    RefundedUnit, ShippedUnit, UnitChanges, UnitId, check_refund_amounts,
    match_unallocated_refunds, reconcile_units,
};
use serde::{Deserialize, Serialize};

pub(crate) use applied_refund::AppliedRefund;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShippedUnits {
    lines: BTreeMap<String, Vec<Unit>>,
    /// Refunds that were applied, in that order, including refunds that covered no unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refunds: Vec<AppliedRefund>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub(crate) unit: i32,
    #[serde(flatten)]
    pub(crate) amounts: Amounts,
    /// Index of the covering refund in `refunds`. An index is stored because an identifier may
    /// have a thousand bytes and one refund may cover thousands of units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refund: Option<usize>,
}

impl ShippedUnits {
    /// Reconciles the units with a snapshot. `returned` says whether a unit is in a return. Units
    /// that are in no return may have been refunded before they shipped.
    pub(crate) fn reconcile(
        &mut self,
        order: &Order,
        returned: impl Fn(&UnitId) -> bool,
    ) -> Vec<Discrepancy> {
        let stored = self.lines.iter().map(|(line, units)| {
            let unit = |it: &Unit| ShippedUnit {
                unit: it.unit,
                amounts: it.amounts,
                is_in_use: it.refund.is_some()
                    || returned(&unit_id(&order.identifier, line, it.unit)),
            };
            (line.clone(), units.iter().map(unit).collect())
        });
        let UnitChanges { lines, discrepancies } = reconcile_units(order, &stored.collect());
        for (line, changes) in lines {
            self.apply(line, changes);
        }
        if !self.refunds.is_empty() {
            let units = self.candidate_units(&order.identifier, returned);
            let covered = match_unallocated_refunds(order, &self.matched_refunds(), &units);
            self.cover(&covered);
        }
        discrepancies
    }

    /// Refunds of a snapshot that were not applied yet.
    pub(crate) fn new_refunds<'o>(&self, order: &'o Order) -> impl Iterator<Item = &'o Refund> {
        let applied: BTreeSet<_> = self.refunds.iter().map(|it| it.identifier.as_str()).collect();
        let is_applied = move |refund: &Refund| applied.contains(refund.identifier.as_str());
        order.refunds.iter().filter(move |it| !it.is_ignored() && !is_applied(it))
    }

    /// Applied refunds to which a snapshot gives another `rma_identifier`, as they were applied and as
    /// the snapshot has them.
    pub(crate) fn renamed_refunds<'o>(
        &self,
        order: &'o Order,
    ) -> impl Iterator<Item = (&AppliedRefund, &'o Refund)> {
        let applied: HashMap<_, _> =
            self.refunds.iter().map(|it| (it.identifier.as_str(), it)).collect();
        let pairs = order.refunds.iter().filter(|it| !it.is_ignored()).filter_map(move |refund| {
            applied.get(refund.identifier.as_str()).map(|applied| (*applied, refund))
        });
        pairs.filter(|(applied, refund)| applied.rma_identifier != refund.rma_identifier)
    }

    /// Matched refunds to which a snapshot gives another return than those that their units are in, with that
    /// return. Calls `return_of` at most once for each unit, however many refunds there are.
    pub(crate) fn refunds_of_other_returns<'o, 'r>(
        &self,
        order: &'o Order,
        return_of: impl Fn(&UnitId) -> Option<&'r str>,
    ) -> Vec<(&'o Refund, &'o str)> {
        let places: HashMap<_, _> =
            self.refunds.iter().map(|it| it.identifier.as_str()).zip(0..).collect();
        let renamed = self.renamed_refunds(order).filter(|(applied, _)| !applied.is_unmatched);
        let mut renamed: BTreeMap<usize, (&Refund, &str)> = renamed
            .filter_map(|(_, refund)| {
                let rma = refund.rma_identifier.as_deref()?;
                Some((*places.get(refund.identifier.as_str())?, (refund, rma)))
            })
            .collect();
        if renamed.is_empty() {
            return Vec::new();
        }
        for (id, unit) in self.all(&order.identifier) {
            let Some(place) = unit.refund else { continue };
            let Some((_, rma)) = renamed.get(&place) else { continue };
            if return_of(&id) == Some(*rma) {
                renamed.remove(&place);
            }
        }
        renamed.into_values().collect()
    }

    /// The applied refunds, in the order in which they were applied.
    pub(crate) fn refunds(&self) -> &[AppliedRefund] {
        &self.refunds
    }

    pub(crate) fn refund(&mut self, identifier: &str) -> Option<&mut AppliedRefund> {
        self.refunds.iter_mut().find(|it| it.identifier == identifier)
    }

    /// Makes the units of applied refunds unrefunded, so that the refunds can be matched again. Units of
    /// an unmatched refund are in no return.
    pub(crate) fn unmatch(&mut self, refunds: &HashSet<&str>) {
        let named = |(place, it): (usize, &AppliedRefund)| {
            refunds.contains(it.identifier.as_str()).then_some(place)
        };
        let places: HashSet<_> = self.refunds.iter().enumerate().filter_map(named).collect();
        for unit in self.lines.values_mut().flatten() {
            unit.refund = unit.refund.filter(|place| !places.contains(place));
        }
    }

    /// Quantities that the applied refunds paid, including refunds that a snapshot omits.
    pub(crate) fn matched_refunds(&self) -> MatchedRefunds<'_> {
        self.refunds.iter().map(|it| (it.identifier.as_str(), &it.quantities)).collect()
    }

    /// Records refunds as applied. Those that were applied before are replaced.
    pub(crate) fn record_refunds(&mut self, refunds: &[&Refund], unmatched: &HashSet<&str>) {
        let applied = |refund: &Refund| {
            let is_unmatched = unmatched.contains(refund.identifier.as_str());
            AppliedRefund::new(refund, is_unmatched)
        };
        let mut new: BTreeMap<_, _> =
            refunds.iter().map(|it| (it.identifier.as_str(), it)).collect();
        for stored in &mut self.refunds {
            if let Some(refund) = new.remove(stored.identifier.as_str()) {
                *stored = applied(refund);
            }
        }
        let is_new = |it: &&&Refund| new.contains_key(it.identifier.as_str());
        self.refunds.extend(refunds.iter().filter(is_new).map(|refund| applied(refund)));
    }

    /// Discrepancies of these refunds, which were applied, with the amounts paid.
    pub(crate) fn check_refund_amounts(
        &self,
        order: &Order,
        new: &BTreeSet<&str>,
    ) -> Vec<Discrepancy> {
        let refunds = self.refunds.iter().map(|it| PaidRefund {
            identifier: &it.identifier,
            amount_cents: it.amount_cents,
            quantities: &it.quantities,
        });
        let paid = |units: &Vec<Unit>| units.iter().map(|it| it.amounts.paid()).collect();
        let amounts = self.lines.iter().map(|(line, units)| (line.clone(), paid(units)));
        check_refund_amounts(order, refunds, new, &amounts.collect())
    }

    /// Every unit of the order, for matching with refunds.
    pub(crate) fn candidate_units(
        &self,
        order: &str,
        returned: impl Fn(&UnitId) -> bool,
    ) -> Vec<CandidateUnit> {
        let names = self.refunds.iter().map(|refund| Arc::from(refund.identifier.as_str()));
        let names: Vec<Arc<str>> = names.collect();
        let candidate = |(id, unit): (UnitId, &Unit)| CandidateUnit {
            is_returned: returned(&id),
            id,
            refunded_by: unit.refund.and_then(|place| names.get(place).cloned()),
        };
        self.all(order).map(candidate).collect()
    }

    /// The units of a line, in the order of their numbers.
    pub(crate) fn units(&self, line: &str) -> &[Unit] {
        self.lines.get(line).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn unit(&self, line: &str, unit: i32) -> Option<&Unit> {
        let units = self.units(line);
        units.get(units.binary_search_by_key(&unit, |it| it.unit).ok()?)
    }

    /// Every unit of the order.
    pub(crate) fn all(&self, order: &str) -> impl Iterator<Item = (UnitId, &Unit)> {
        self.lines.iter().flat_map(move |(line, units)| {
            units.iter().map(move |it| (unit_id(order, line, it.unit), it))
        })
    }

    /// Marks units as covered by applied refunds.
    pub(crate) fn cover(&mut self, covered: &[RefundedUnit]) {
        let places: HashMap<_, _> =
            self.refunds.iter().map(|it| it.identifier.as_str()).zip(0..).collect();
        for RefundedUnit { refund_identifier, unit: id, .. } in covered {
            let line = self.lines.get_mut(&id.order_line_item_identifier);
            let unit = line.and_then(|units| {
                let place = units.binary_search_by_key(&id.unit, |it| it.unit).ok()?;
                units.get_mut(place)
            });
            if let Some(unit) = unit {
                unit.refund = places.get(&**refund_identifier).copied();
            }
        }
    }

    fn apply(&mut self, line: String, LineChanges { added, removed }: LineChanges) {
        if added.is_empty() && removed.is_empty() {
            return;
        }
        let units = self.lines.entry(line.clone()).or_default();
        units.retain(|it| !removed.contains(&it.unit));
        let new = |AddedUnit { unit, amounts }| Unit { unit, amounts, refund: None };
        units.extend(added.into_iter().map(new));
        units.sort_unstable_by_key(|it| it.unit);
        if units.is_empty() {
            self.lines.remove(&line);
        }
    }
}

pub(crate) fn unit_id(order: &str, line: &str, unit: i32) -> UnitId {
    UnitId { order_identifier: order.to_owned(), order_line_item_identifier: line.to_owned(), unit }
}
