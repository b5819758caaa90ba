//! Projection of the snapshots of one order.

use std::collections::BTreeSet;

use domain::access::MerchantId;
use domain::order::{Order, OrderStored, Refund};
use domain::returns::{Discrepancy, UnitId};
use platform::Timestamp;

use crate::refunds;
use crate::refunds::affected::AffectedReturns;
use crate::shipped_units::ShippedUnits;
use crate::store::orders::SnapshotVersion;
use crate::store::units::{Held, is_held};

/// A snapshot with the sequence number and the time of its event at order-intake.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) event: &'a OrderStored,
    pub(crate) sequence: i64,
    pub(crate) stored_at: Timestamp,
}

impl Snapshot<'_> {
    pub(crate) fn version(&self) -> SnapshotVersion {
        (self.event.order.updated_at, self.sequence)
    }

    /// Whether the merchant's time was ahead of ours. An operator may have reset the order since.
    pub(crate) fn is_from_the_future(&self) -> bool {
        self.event.order.updated_at > self.stored_at
    }

    /// Whether a stored snapshot of this version is newer. A snapshot from the future does not replace one
    /// of a later event: the reset between them may still come, if old events are published again.
    pub(crate) fn is_older_than(&self, stored: SnapshotVersion) -> bool {
        self.version() < stored || (self.is_from_the_future() && self.sequence < stored.1)
    }

    /// Whether this is a reset of the order after a snapshot of this version.
    pub(crate) fn resets(&self, stored: SnapshotVersion) -> bool {
        self.event.is_reset && self.sequence > stored.1
    }
}

/// An order of a batch, before it is saved.
pub(crate) struct OrderProjection<'a> {
    /// At least one, oldest first.
    pub(crate) snapshots: Vec<Snapshot<'a>>,
    pub(crate) shipped_units: ShippedUnits,
    /// Version of the stored snapshot; `None` for a new order.
    pub(crate) stored_version: Option<SnapshotVersion>,
    /// Time of the first event about the order.
    pub(crate) stored_at: Timestamp,
    /// Identifiers of unmatched refunds that a snapshot corrected.
    pub(crate) corrected: BTreeSet<&'a str>,
}

/// The effect of one snapshot.
#[derive(Default)]
pub(crate) struct AppliedSnapshot<'a> {
    pub(crate) discrepancies: Vec<Discrepancy>,
    /// Identifiers of unmatched refunds that the snapshot corrected.
    pub(crate) corrected: BTreeSet<&'a str>,
}

impl<'a> OrderProjection<'a> {
    /// Whether the stored snapshot is newer. Only new refunds of a late snapshot are applied.
    pub(crate) fn is_late(&self, snapshot: &Snapshot<'_>) -> bool {
        self.stored_version.is_some_and(|stored| snapshot.is_older_than(stored))
    }

    /// New refunds, and unmatched refunds whose return the snapshot corrects.
    pub(crate) fn unapplied_refunds(&self, snapshot: &Snapshot<'a>) -> Vec<&'a Refund> {
        let order = &snapshot.event.order;
        let new = self.shipped_units.new_refunds(order);
        if self.is_late(snapshot) {
            return new.collect();
        }
        let renamed = self.shipped_units.renamed_refunds(order);
        let corrected = renamed.filter(|(applied, _)| applied.is_unmatched);
        new.chain(corrected.map(|(_, refund)| refund)).collect()
    }

    /// Applies one snapshot.
    pub(crate) fn apply(
        &mut self,
        snapshot: Snapshot<'a>,
        held: &Held,
        returns: &mut AffectedReturns,
    ) -> AppliedSnapshot<'a> {
        let OrderStored { merchant, order, .. } = snapshot.event;
        let mut applied = AppliedSnapshot::default();
        let found = &mut applied.discrepancies;
        if !self.is_late(&snapshot) {
            *found = self.shipped_units.reconcile(order, |unit| is_held(held, merchant, unit));
            found.extend(self.renamed_after_match(merchant, order, held));
        }
        let refunds = self.unapplied_refunds(&snapshot);
        if refunds.is_empty() {
            return applied;
        }
        let new = self.shipped_units.new_refunds(order);
        let new: BTreeSet<_> = new.map(|refund| refund.identifier.as_str()).collect();
        let units = &mut self.shipped_units;
        found.extend(refunds::apply(units, merchant, order, &refunds, held, returns));
        found.extend(units.check_refund_amounts(order, &new));
        let identifiers = refunds.iter().map(|refund| refund.identifier.as_str());
        applied.corrected = identifiers.filter(|identifier| !new.contains(identifier)).collect();
        self.corrected.extend(&applied.corrected);
        applied
    }

    /// Refunds that were matched and now name a return that none of their units is in.
    fn renamed_after_match(
        &self,
        merchant: &MerchantId,
        order: &Order,
        held: &Held,
    ) -> Vec<Discrepancy> {
        let held = held.get(merchant.as_str());
        let return_of = |unit: &UnitId| Some(held?.get(unit)?.rma_identifier.as_str());
        let renamed = self.shipped_units.refunds_of_other_returns(order, return_of);
        let discrepancy = |(refund, rma): (&Refund, &str)| Discrepancy::RefundNamesOtherReturn {
            refund_identifier: refund.identifier.clone(),
            order_identifier: order.identifier.clone(),
            rma_identifier: rma.to_owned(),
        };
        renamed.into_iter().map(discrepancy).collect()
    }
}
