//! Projection of the snapshots of one order.

use std::collections::BTreeSet;

use domain::access::MerchantId;
use domain::order::{Order, OrderStored, Refund};
use domain::returns::{Discrepancy, UnitId};

use crate::affected_returns::AffectedReturns;
use crate::refunds;
use crate::shipped_units::{AppliedRefund, ShippedUnits};
use crate::store::orders::SnapshotVersion;
use crate::store::returns::{Held, is_held};

/// A snapshot and the sequence number of its event at order-intake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) stored: &'a OrderStored,
    pub(crate) sequence: i64,
}

impl Snapshot<'_> {
    pub(crate) fn version(&self) -> SnapshotVersion {
        (self.stored.order.updated_at, self.sequence)
    }
}

/// An order of a batch, before it is saved.
pub(crate) struct OrderProjection<'a> {
    /// At least one, oldest first.
    pub(crate) snapshots: Vec<Snapshot<'a>>,
    pub(crate) shipped_units: ShippedUnits,
    /// SnapshotVersion of the stored snapshot; `None` for a new order.
    pub(crate) stored_version: Option<SnapshotVersion>,
    /// Identifiers of unmatched refunds that a snapshot corrected.
    pub(crate) corrected: Vec<String>,
}

impl<'a> OrderProjection<'a> {
    /// Whether the stored snapshot is newer. Only new refunds of a late snapshot are applied.
    pub(crate) fn is_late(&self, snapshot: &Snapshot<'_>) -> bool {
        self.stored_version.is_some_and(|stored_version| snapshot.version() < stored_version)
    }

    /// New refunds, and unmatched refunds whose return the snapshot corrects.
    pub(crate) fn unapplied_refunds(&self, snapshot: &Snapshot<'a>) -> Vec<&'a Refund> {
        let order = &snapshot.stored.order;
        let new = self.shipped_units.new_refunds(order);
        if self.is_late(snapshot) {
            return new.collect();
        }
        let renamed = self.shipped_units.renamed_refunds(order);
        let corrected = renamed.filter(|(applied, _)| applied.is_unmatched);
        new.chain(corrected.map(|(_, refund)| refund)).collect()
    }

    /// Applies one snapshot and returns the discrepancies.
    pub(crate) fn apply(
        &mut self,
        snapshot: Snapshot<'a>,
        held: &Held,
        returns: &mut AffectedReturns,
    ) -> Vec<Discrepancy> {
        let OrderStored { merchant, order } = snapshot.stored;
        let mut found = Vec::new();
        if !self.is_late(&snapshot) {
            found = self.shipped_units.reconcile(order, |unit| is_held(held, merchant, unit));
            found.extend(renamed_after_match(&self.shipped_units, merchant, order, held));
        }
        let refunds = self.unapplied_refunds(&snapshot);
        if refunds.is_empty() {
            return found;
        }
        let new = self.shipped_units.new_refunds(order);
        let new: BTreeSet<_> = new.map(|refund| refund.identifier.as_str()).collect();
        let corrected = refunds.iter().filter(|it| !new.contains(it.identifier.as_str()));
        self.corrected.extend(corrected.map(|refund| refund.identifier.clone()));
        let units = &mut self.shipped_units;
        found.extend(refunds::apply(units, merchant, order, &refunds, held, returns));
        found.extend(units.check_refund_amounts(order, &new));
        found
    }
}

/// Refunds that were matched and now name a return that none of their units is in.
fn renamed_after_match(
    shipped_units: &ShippedUnits,
    merchant: &MerchantId,
    order: &Order,
    held: &Held,
) -> Vec<Discrepancy> {
    let discrepancy = |(applied, refund): (&AppliedRefund, &Refund)| {
        let rma_identifier = refund.rma_identifier.clone().filter(|_| !applied.is_unmatched)?;
        let held = held.get(merchant.as_str());
        let mut units = shipped_units.covered_by(applied, &order.identifier).into_iter();
        let is_in_return = |unit: UnitId| {
            held.and_then(|held| held.get(&unit))
                .is_some_and(|it| it.rma_identifier == rma_identifier)
        };
        (!units.any(is_in_return)).then(|| Discrepancy::RefundNamesOtherReturn {
            refund_identifier: refund.identifier.clone(),
            order_identifier: order.identifier.clone(),
            rma_identifier: rma_identifier.clone(),
        })
    };
    shipped_units.renamed_refunds(order).filter_map(discrepancy).collect()
}
