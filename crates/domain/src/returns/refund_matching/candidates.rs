//! The returns and units that refunds of an order can cover.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::returns::{ReceivingStatus, Resolution, Rma, RmaStatus, RmaUnit, UnitId};

/// A shipped unit of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateUnit {
    pub id: UnitId,
    /// Whether the unit is in a return that was not canceled.
    pub is_returned: bool,
    /// The refund that covers the unit.
    pub refunded_by: Option<Arc<str>>,
}

/// The part of a return that refund matching needs; much smaller than the [`Rma`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateReturn {
    pub rma_identifier: String,
    pub(super) created_at: DateTime<Utc>,
    /// Whether the return was canceled or declined.
    pub(super) is_canceled: bool,
    /// Whether the return waits for review, so that no refund is matched with it.
    is_in_review: bool,
    /// The units that await a refund, by order and line.
    unrefunded: BTreeMap<String, BTreeMap<String, BTreeSet<UnrefundedUnit>>>,
}

/// A unit that awaits a refund. Refunds cover units in this order: refunds before exchanges, then
/// received before missing units, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UnrefundedUnit {
    is_exchanged: bool,
    is_missing: bool,
    unit: i32,
}

impl CandidateReturn {
    /// Includes only units of orders for which `is_relevant` is true.
    pub fn new(rma: &Rma, is_relevant: impl Fn(&str) -> bool) -> Self {
        let mut unrefunded: BTreeMap<_, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
        let units = rma
            .active_units()
            .filter(|unit| unit.refunded_by.is_none() && is_relevant(&unit.id.order_identifier));
        for unit in units.filter(|_| rma.status.is_open()) {
            let UnitId { order_identifier, order_line_item_identifier, .. } = unit.id.clone();
            let lines = unrefunded.entry(order_identifier).or_default();
            lines.entry(order_line_item_identifier).or_default().insert(UnrefundedUnit::new(unit));
        }
        Self {
            rma_identifier: rma.rma_identifier.clone(),
            created_at: rma.created_at,
            is_canceled: matches!(rma.status, RmaStatus::Canceled | RmaStatus::Declined),
            is_in_review: rma.is_in_review(),
            unrefunded,
        }
    }

    /// Whether refunds can be matched with the return.
    pub fn takes_refunds(&self) -> bool {
        !self.is_canceled && !self.is_in_review
    }

    /// Whether units of this order await a refund.
    pub fn awaits_refund(&self, order: &str) -> bool {
        self.unrefunded.contains_key(order)
    }

    pub fn mark_refunded(&mut self, id: &UnitId) {
        let lines = self.unrefunded.get_mut(&id.order_identifier);
        let units = lines.and_then(|lines| lines.get_mut(&id.order_line_item_identifier));
        if let Some(units) = units {
            units.retain(|it| it.unit != id.unit);
        }
    }

    /// The units of a line that await a refund, in the order in which refunds cover them.
    pub(super) fn unrefunded_units(&self, order: &str, line: &str) -> impl Iterator<Item = UnitId> {
        let units = self.unrefunded.get(order).and_then(|lines| lines.get(line));
        units.into_iter().flatten().map(move |it| UnitId {
            order_identifier: order.to_owned(),
            order_line_item_identifier: line.to_owned(),
            unit: it.unit,
        })
    }
}

impl UnrefundedUnit {
    fn new(unit: &RmaUnit) -> Self {
        Self {
            is_exchanged: unit.resolution != Resolution::Refund,
            is_missing: unit.receiving_status != ReceivingStatus::Received,
            unit: unit.id.unit,
        }
    }
}

/// The units of each line that are in no return and not refunded.
pub(super) struct UnreturnedUnits<'a>(BTreeMap<&'a str, BTreeSet<&'a UnitId>>);

impl<'a> UnreturnedUnits<'a> {
    pub(super) fn new(units: &'a [CandidateUnit]) -> Self {
        let mut unreturned: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for unit in units.iter().filter(|it| !it.is_returned && it.refunded_by.is_none()) {
            let line = unit.id.order_line_item_identifier.as_str();
            unreturned.entry(line).or_default().insert(&unit.id);
        }
        Self(unreturned)
    }

    /// Removes and returns up to `limit` units of a line, the lowest numbers first.
    pub(super) fn take(&mut self, line: &str, limit: i64) -> Vec<UnitId> {
        let Some(units) = self.0.get_mut(line) else { return Vec::new() };
        let limit = usize::try_from(limit).unwrap_or_default();
        std::iter::from_fn(|| units.pop_first()).take(limit).cloned().collect()
    }
}
