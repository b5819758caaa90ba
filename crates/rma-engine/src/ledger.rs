//! The units of one order as they are kept: which there are, what each is worth, which are
//! refunded, and which refunds had their effect. What becomes of it is `domain::returns`' to say.

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
    /// Refunds that had their effect, whatever it was, in the order in which they had it.
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
    /// The refund that covers it, by its place among those of the ledger: a name may have a
    /// thousand bytes, and its refund cover thousands of units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refund: Option<usize>,
}

impl Ledger {
    /// Brings the ledger in line with a snapshot. `returned` says whether a unit is in a return.
    /// Units that are in none may have been paid for before they were here.
    pub(crate) fn follow(
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

    /// The refunds of a snapshot that had no effect yet.
    pub(crate) fn new_refunds<'o>(&self, order: &'o Order) -> impl Iterator<Item = &'o Refund> {
        let seen = self.paid_before();
        let is_seen = move |refund: &Refund| seen.contains_key(refund.identifier.as_str());
        order.refunds.iter().filter(move |it| !it.is_ignored() && !is_seen(it))
    }

    /// What the refunds that had their effect paid, also those that a snapshot leaves out.
    pub(crate) fn paid_before(&self) -> MatchedRefunds<'_> {
        self.refunds.iter().map(|it| (it.identifier.as_str(), &it.paid)).collect()
    }

    /// Notes that a refund has had its effect.
    pub(crate) fn settle(&mut self, refund: &Refund) {
        let identifier = refund.identifier.clone();
        self.refunds.push(Settled { identifier, paid: refunded_quantities(refund) });
    }

    /// Every unit of the order, as refunds see it.
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

    /// Notes which units refunds cover that had their effect.
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
