//! The ledger of a line's shipped units, brought in line with a snapshot of its order.
//!
//! The invariant: a unit that is returned or refunded never disappears, and the amounts of a unit
//! that stays never change. Bringing in the same snapshot again changes nothing.
//!
//! Which snapshot is the newest is the caller's to know.

use super::{Amounts, Discrepancy};
use crate::order::OrderLine;

/// A unit of a line that is on the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedUnit {
    /// Its number in the line.
    pub unit: i32,
    pub amounts: Amounts,
    /// Whether it is in a return that was not canceled, or refunded.
    pub is_in_use: bool,
}

/// What a snapshot changes for one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitChanges {
    /// New units, or removed ones that are back. Their amounts are fixed from now on.
    pub added: Vec<AddedUnit>,
    /// Units that did not ship after all; none of them is is_in_use.
    pub removed: Vec<i32>,
    pub discrepancies: Vec<Discrepancy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedUnit {
    pub unit: i32,
    pub amounts: Amounts,
}

/// Brings the units of a line in line with a newer snapshot of it. `known` are the units on the
/// ledger, without those removed before, in any order.
///
/// Units appear with the lowest numbers that are not taken, and share what the line says less
/// what the others were given. The highest free numbers are removed first.
pub fn reconcile_line(
    order_identifier: &str,
    line: &OrderLine,
    known: &[ShippedUnit],
) -> UnitChanges {
    let shipped = usize::try_from(line.quantity_shipped).unwrap_or_default();
    if known.len() > shipped {
        let mut change = withdraw(order_identifier, &line.identifier, known, shipped);
        let stays = |it: &&ShippedUnit| !change.removed.contains(&it.unit);
        let staying: Vec<_> = known.iter().filter(stays).map(|it| it.amounts).collect();
        if staying.len() == shipped {
            change.discrepancies.extend(amounts_changed(order_identifier, line, &staying));
        }
        return change;
    }
    let taken = known.iter().map(|it| it.amounts).sum();
    let parts = Amounts::of_line(line).less(taken).among(shipped - known.len());
    let is_free = |unit: &i32| known.iter().all(|it| it.unit != *unit);
    let added: Vec<_> = (1..)
        .filter(is_free)
        .zip(parts)
        .map(|(unit, amounts)| AddedUnit { unit, amounts })
        .collect();
    let all = known.iter().map(|it| it.amounts).chain(added.iter().map(|it| it.amounts));
    let discrepancies = amounts_changed(order_identifier, line, &all.collect::<Vec<_>>());
    UnitChanges { added, removed: Vec::new(), discrepancies: discrepancies.into_iter().collect() }
}

/// What a snapshot without the line does to its units.
pub fn reconcile_missing_line(
    order_identifier: &str,
    line_identifier: &str,
    known: &[ShippedUnit],
) -> UnitChanges {
    withdraw(order_identifier, line_identifier, known, 0)
}

fn withdraw(order: &str, line: &str, known: &[ShippedUnit], shipped: usize) -> UnitChanges {
    let mut free: Vec<_> = known.iter().filter(|it| !it.is_in_use).map(|it| it.unit).collect();
    free.sort_unstable_by_key(|unit| std::cmp::Reverse(*unit));
    let is_in_use = known.len() - free.len();
    free.truncate(known.len().saturating_sub(shipped));
    let count = |units: usize| i64::try_from(units).unwrap_or(i64::MAX);
    let taken_away = (is_in_use > shipped).then(|| Discrepancy::ShippedQuantityReduced {
        order_identifier: order.to_owned(),
        order_line_item_identifier: line.to_owned(),
        quantity_shipped: count(shipped),
        units_in_use: count(is_in_use),
    });
    UnitChanges {
        added: Vec::new(),
        removed: free,
        discrepancies: taken_away.into_iter().collect(),
    }
}

fn amounts_changed(order: &str, line: &OrderLine, units: &[Amounts]) -> Option<Discrepancy> {
    let line_paid_cents = Amounts::of_line(line).paid();
    let units_paid_cents = units.iter().map(|it| it.paid()).sum();
    // Nothing shipped, nothing to divide.
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
