//! The shipped units of an order line, derived from snapshots of the order.
//!
//! A returned or refunded unit is never removed, and the amounts of a unit never change. Applying
//! the same snapshot again changes nothing. The caller decides which snapshot is the newest.

use super::{Amounts, Discrepancy};
use crate::order::OrderLine;

/// A shipped unit of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedUnit {
    /// The number of the unit in its line.
    pub unit: i32,
    pub amounts: Amounts,
    /// Whether the unit is refunded or in a return that was not canceled.
    pub is_in_use: bool,
}

/// The changes that a snapshot makes to the units of one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitChanges {
    /// Units that shipped since the last snapshot.
    pub added: Vec<AddedUnit>,
    /// Numbers of units that are no longer shipped. None of them is in use.
    pub removed: Vec<i32>,
    pub discrepancies: Vec<Discrepancy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedUnit {
    pub unit: i32,
    pub amounts: Amounts,
}

/// Compares the shipped units of a line, in any order, with a newer snapshot of the line.
///
/// Added units get the lowest unused numbers and share the part of the line's amounts that the
/// other units do not have. The highest numbers that are not in use are removed first.
pub fn reconcile_line(
    order_identifier: &str,
    line: &OrderLine,
    units: &[ShippedUnit],
) -> UnitChanges {
    let shipped = usize::try_from(line.quantity_shipped).unwrap_or_default();
    if units.len() > shipped {
        let mut changes = remove_units(order_identifier, &line.identifier, units, shipped);
        let is_kept = |it: &&ShippedUnit| !changes.removed.contains(&it.unit);
        let kept: Vec<_> = units.iter().filter(is_kept).map(|it| it.amounts).collect();
        if kept.len() == shipped {
            changes.discrepancies.extend(amounts_changed(order_identifier, line, &kept));
        }
        return changes;
    }
    let assigned = units.iter().map(|it| it.amounts).sum();
    let shares = Amounts::of_line(line).minus(assigned).split(shipped - units.len());
    let is_unused = |number: &i32| units.iter().all(|it| it.unit != *number);
    let added: Vec<_> = (1..)
        .filter(is_unused)
        .zip(shares)
        .map(|(unit, amounts)| AddedUnit { unit, amounts })
        .collect();
    let all = units.iter().map(|it| it.amounts).chain(added.iter().map(|it| it.amounts));
    let discrepancy = amounts_changed(order_identifier, line, &all.collect::<Vec<_>>());
    UnitChanges { added, removed: Vec::new(), discrepancies: discrepancy.into_iter().collect() }
}

/// Like [`reconcile_line`], for a line that is missing from the newer snapshot.
pub fn reconcile_missing_line(
    order_identifier: &str,
    line_identifier: &str,
    units: &[ShippedUnit],
) -> UnitChanges {
    remove_units(order_identifier, line_identifier, units, 0)
}

fn remove_units(order: &str, line: &str, units: &[ShippedUnit], shipped: usize) -> UnitChanges {
    let mut removed: Vec<_> = units.iter().filter(|it| !it.is_in_use).map(|it| it.unit).collect();
    removed.sort_unstable_by_key(|unit| std::cmp::Reverse(*unit));
    let in_use = units.len() - removed.len();
    removed.truncate(units.len().saturating_sub(shipped));
    let count = |units: usize| i64::try_from(units).unwrap_or(i64::MAX);
    let reduced = (in_use > shipped).then(|| Discrepancy::ShippedQuantityReduced {
        order_identifier: order.to_owned(),
        order_line_item_identifier: line.to_owned(),
        quantity_shipped: count(shipped),
        units_in_use: count(in_use),
    });
    UnitChanges { added: Vec::new(), removed, discrepancies: reduced.into_iter().collect() }
}

fn amounts_changed(order: &str, line: &OrderLine, units: &[Amounts]) -> Option<Discrepancy> {
    let line_paid_cents = Amounts::of_line(line).paid();
    let units_paid_cents = units.iter().map(|it| it.paid()).sum();
    if units.is_empty() || line_paid_cents == units_paid_cents {
        return None;
    }
    Some(Discrepancy::AmountsChanged {
        order_identifier: order.to_owned(),
        order_line_item_identifier: line.identifier.clone(),
        line_paid_cents,
        units_paid_cents,
    })
}
