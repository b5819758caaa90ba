//! The ledger of one order: its shipped units with their amounts, the refunds that were applied,
//! and the units that each refund covers. `domain::returns` decides how the ledger changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::order::{Order, Refund};
use domain::returns::{
    Amounts, CandidateUnit, Discrepancy, MatchedRefunds, RefundedQuantities, RefundedUnit,
    ShippedUnit, UnitChanges, UnitId, match_unallocated_refunds, reconcile_line,
    reconcile_missing_line, refunded_quantities,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    lines: BTreeMap<String, Vec<Unit>>,
    /// Refunds that were applied, in that order, including refunds that covered no unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refunds: Vec<Settled>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Settled {
    identifier: String,
    paid: RefundedQuantities,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unit {
    pub(crate) unit: i32,
    #[serde(flatten)]
    pub(crate) amounts: Amounts,
    /// Index of the covering refund in the ledger. An index is stored because an identifier may
    /// have a thousand bytes and one refund may cover thousands of units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refund: Option<usize>,
}

impl Ledger {
    /// Reconciles the ledger with a snapshot. `returned` says whether a unit is in a return. Units
    /// that are in no return may have been refunded before the ledger knew them.
    pub(crate) fn reconcile(
        &mut self,
        order: &Order,
        returned: impl Fn(&UnitId) -> bool,
    ) -> Vec<Discrepancy> {
        let mut discrepancies = Vec::new();
        for line in &order.items {
            let known = self.known(order, &line.identifier, &returned);
            let change = reconcile_line(&order.identifier, line, &known);
            discrepancies.extend(self.apply(&line.identifier, change));
        }
        let present: BTreeSet<_> =
            order.items.iter().map(|line| line.identifier.as_str()).collect();
        let gone = self.lines.keys().filter(|line| !present.contains(line.as_str()));
        for line in gone.cloned().collect::<Vec<_>>() {
            let known = self.known(order, &line, &returned);
            let change = reconcile_missing_line(&order.identifier, &line, &known);
            discrepancies.extend(self.apply(&line, change));
        }
        if !self.refunds.is_empty() {
            let units = self.known_units(&order.identifier, returned);
            let covered = match_unallocated_refunds(order, &self.paid_before(), &units);
            self.cover(&covered);
        }
        discrepancies
    }

    /// Refunds of a snapshot that were not applied yet.
    pub(crate) fn new_refunds<'o>(&self, order: &'o Order) -> impl Iterator<Item = &'o Refund> {
        let seen = self.paid_before();
        let is_seen = move |refund: &Refund| seen.contains_key(refund.identifier.as_str());
        order.refunds.iter().filter(move |it| !it.is_ignored() && !is_seen(it))
    }

    /// Quantities that the applied refunds paid, including refunds that a snapshot omits.
    pub(crate) fn paid_before(&self) -> MatchedRefunds<'_> {
        self.refunds.iter().map(|it| (it.identifier.as_str(), &it.paid)).collect()
    }

    /// Marks a refund as applied.
    pub(crate) fn settle(&mut self, refund: &Refund) {
        let identifier = refund.identifier.clone();
        self.refunds.push(Settled { identifier, paid: refunded_quantities(refund) });
    }

    /// Every unit of the order, for matching with refunds.
    pub(crate) fn known_units(
        &self,
        order: &str,
        returned: impl Fn(&UnitId) -> bool,
    ) -> Vec<CandidateUnit> {
        let names = self.refunds.iter().map(|refund| Arc::from(refund.identifier.as_str()));
        let names: Vec<Arc<str>> = names.collect();
        let known = |(id, unit): (UnitId, &Unit)| CandidateUnit {
            is_returned: returned(&id),
            id,
            refunded_by: unit.refund.and_then(|place| names.get(place).cloned()),
        };
        self.all(order).map(known).collect()
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

    fn known(
        &self,
        order: &Order,
        line: &str,
        returned: &impl Fn(&UnitId) -> bool,
    ) -> Vec<ShippedUnit> {
        let ledger_unit = |it: &Unit| ShippedUnit {
            unit: it.unit,
            amounts: it.amounts,
            is_in_use: it.refund.is_some() || returned(&unit_id(&order.identifier, line, it.unit)),
        };
        self.units(line).iter().map(ledger_unit).collect()
    }

    fn apply(&mut self, line: &str, change: UnitChanges) -> Vec<Discrepancy> {
        let UnitChanges { added, removed, discrepancies } = change;
        if !added.is_empty() || !removed.is_empty() {
            let units = self.lines.entry(line.to_owned()).or_default();
            units.retain(|it| !removed.contains(&it.unit));
            let new = |it: domain::returns::AddedUnit| Unit {
                unit: it.unit,
                amounts: it.amounts,
                refund: None,
            };
            units.extend(added.into_iter().map(new));
            units.sort_unstable_by_key(|it| it.unit);
            if units.is_empty() {
                self.lines.remove(line);
            }
        }
        discrepancies
    }
}

pub(crate) fn unit_id(order: &str, line: &str, unit: i32) -> UnitId {
    UnitId { order_identifier: order.to_owned(), order_line_item_identifier: line.to_owned(), unit }
}
