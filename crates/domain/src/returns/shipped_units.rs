//! The shipped units of an order, derived from snapshots of the order.
//!
//! A returned or refunded unit is never removed, and the amounts of a unit never change. Applying
//! the same snapshot again changes nothing. The caller decides which snapshot is the newest.
//!
//! Added units get the lowest unused numbers. They share the part of their line's amounts that the
//! other units do not have, and their part of the order's discount that no line carries. The highest
//! numbers that are not in use are removed first.

use std::collections::BTreeMap;

use super::money::apportion;
use super::{Amounts, Discrepancy};
use crate::order::{Order, OrderLine};

/// A shipped unit of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShippedUnit {
    /// The number of the unit in its line.
    pub unit: i32,
    pub amounts: Amounts,
    /// Whether the unit is refunded or in a return that was not canceled.
    pub is_in_use: bool,
}

/// The changes that a snapshot makes to the units of an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitChanges {
    pub lines: BTreeMap<String, LineChanges>,
    pub discrepancies: Vec<Discrepancy>,
}

/// The changes of the units of one line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineChanges {
    /// Units that shipped since the last snapshot.
    pub added: Vec<AddedUnit>,
    /// Numbers of units that are no longer shipped. None of them is in use.
    pub removed: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedUnit {
    pub unit: i32,
    pub amounts: Amounts,
}

/// Compares the shipped units of each line, in any order, with a newer snapshot of the order.
pub fn reconcile_units(order: &Order, units: &BTreeMap<String, Vec<ShippedUnit>>) -> UnitChanges {
    let known = |line: &str| units.get(line).map_or(&[][..], Vec::as_slice);
    let items = order.items.iter();
    let lines: Vec<_> = items.map(|it| LineUnits::new(it, known(&it.identifier))).collect();
    let discounts = spread_order_discount(order, &lines);
    let mut changes = UnitChanges::default();
    let mut paid = Vec::with_capacity(lines.len());
    for (line, discount) in lines.iter().zip(discounts) {
        let added = line.added(discount);
        let shares = line.kept.iter().map(|it| it.amounts).chain(added.iter().map(|it| it.amounts));
        paid.push(shares.map(Amounts::paid).sum());
        changes.discrepancies.extend(line.quantity_reduced(&order.identifier));
        let change = LineChanges { added, removed: line.removed.clone() };
        changes.lines.insert(line.line.identifier.clone(), change);
    }
    changes.discrepancies.extend(amounts_changed(order, &lines, &paid));
    for (line, units) in units {
        if changes.lines.contains_key(line) {
            continue;
        }
        let (removed, in_use) = removable(units, 0);
        changes.discrepancies.extend(quantity_reduced(&order.identifier, line, 0, in_use));
        changes.lines.insert(line.clone(), LineChanges { added: Vec::new(), removed });
    }
    changes
}

/// A line of the snapshot and its units.
struct LineUnits<'a> {
    line: &'a OrderLine,
    shipped: usize,
    kept: Vec<&'a ShippedUnit>,
    removed: Vec<i32>,
    /// The amounts that no kept unit has. The added units share them; without any, they belong to
    /// units that may ship later.
    unassigned: Amounts,
}

impl<'a> LineUnits<'a> {
    fn new(line: &'a OrderLine, units: &'a [ShippedUnit]) -> Self {
        let shipped = usize::try_from(line.quantity_shipped).unwrap_or_default();
        let (removed, _) = removable(units, shipped);
        let kept: Vec<_> = units.iter().filter(|it| !removed.contains(&it.unit)).collect();
        let is_expected = kept.is_empty() && line.quantity > line.quantity_canceled;
        let unassigned = if kept.len() < shipped || is_expected {
            Amounts::of_line(line).minus(kept.iter().map(|it| it.amounts).sum())
        } else {
            Amounts::default()
        };
        Self { line, shipped, kept, removed, unassigned }
    }

    /// The added units; `discount` is their part of the order's discount.
    fn added(&self, discount: i64) -> Vec<AddedUnit> {
        let discount_amount_cents = self.unassigned.discount_amount_cents + discount;
        let unassigned = Amounts { discount_amount_cents, ..self.unassigned };
        let shares = unassigned.split(self.shipped.saturating_sub(self.kept.len()));
        let is_unused = |number: &i32| self.kept.iter().all(|it| it.unit != *number);
        let numbers = (1..).filter(is_unused);
        numbers.zip(shares).map(|(unit, amounts)| AddedUnit { unit, amounts }).collect()
    }

    fn quantity_reduced(&self, order: &str) -> Option<Discrepancy> {
        let in_use = self.kept.iter().filter(|it| it.is_in_use).count();
        quantity_reduced(order, &self.line.identifier, self.shipped, in_use)
    }

    /// The discount that the line itself carries. A line without shipped units may have no product
    /// amount yet, but its discount is its own.
    fn carried_discount(&self) -> i64 {
        if self.shipped == 0
            && self.kept.is_empty()
            && self.line.quantity > self.line.quantity_canceled
        {
            return self.line.discount_amount_cents;
        }
        let kept: i64 = self.kept.iter().map(|it| it.amounts.discount_amount_cents).sum();
        kept + self.unassigned.discount_amount_cents
    }

    /// Whether the line has exactly its shipped units.
    fn is_complete(&self) -> bool {
        self.kept.len() <= self.shipped
    }
}

/// The part of the order's discount that no unit and no line carries, spread over the lines with
/// amounts that no unit has, in proportion to those.
fn spread_order_discount(order: &Order, lines: &[LineUnits<'_>]) -> Vec<i64> {
    let carried: i64 = lines.iter().map(LineUnits::carried_discount).sum();
    let weights: Vec<_> = lines.iter().map(|line| line.unassigned.paid()).collect();
    let rest = order.discount_amount_cents - carried;
    apportion(rest.clamp(0, weights.iter().sum()), &weights)
}

/// The numbers of the units to remove until `shipped` are left, and how many units are in use.
fn removable(units: &[ShippedUnit], shipped: usize) -> (Vec<i32>, usize) {
    let mut removed: Vec<_> = units.iter().filter(|it| !it.is_in_use).map(|it| it.unit).collect();
    removed.sort_unstable_by_key(|unit| std::cmp::Reverse(*unit));
    let in_use = units.len() - removed.len();
    removed.truncate(units.len().saturating_sub(shipped));
    (removed, in_use)
}

fn quantity_reduced(order: &str, line: &str, shipped: usize, in_use: usize) -> Option<Discrepancy> {
    let count = |units: usize| i64::try_from(units).unwrap_or(i64::MAX);
    (in_use > shipped).then(|| Discrepancy::ShippedQuantityReduced {
        order_identifier: order.to_owned(),
        order_line_item_identifier: line.to_owned(),
        quantity_shipped: count(shipped),
        units_in_use: count(in_use),
    })
}

/// Compares the amounts of the snapshot with those of the units. An order with a discount that its
/// lines do not carry is compared as a whole, because the units of a line carry a part of it.
fn amounts_changed(order: &Order, lines: &[LineUnits<'_>], paid: &[i64]) -> Vec<Discrepancy> {
    let shipped: Vec<_> =
        lines.iter().zip(paid).filter(|(line, _)| line.shipped + line.kept.len() > 0).collect();
    let on_line = |line: &LineUnits<'_>| match line.shipped + line.kept.len() {
        0 => line.carried_discount(),
        _ => Amounts::of_line(line.line).discount_amount_cents,
    };
    let on_lines: i64 = lines.iter().map(on_line).sum();
    if order.discount_amount_cents <= on_lines {
        let complete = shipped.into_iter().filter(|(line, _)| line.is_complete());
        return complete.filter_map(|(line, paid)| line_changed(order, line.line, *paid)).collect();
    }
    let is_expected = |line: &LineUnits<'_>| line.shipped == 0 && line.unassigned.paid() > 0;
    if shipped.is_empty() || lines.iter().any(|it| !it.is_complete() || is_expected(it)) {
        return Vec::new();
    }
    let before_discount = |(line, _): &(&LineUnits<'_>, &i64)| {
        line.line.product_amount_cents + line.line.tax_amount_cents
    };
    let total: i64 = shipped.iter().map(before_discount).sum();
    let order_paid_cents = (total - order.discount_amount_cents).max(0);
    let units_paid_cents = paid.iter().sum();
    if order_paid_cents == units_paid_cents {
        return Vec::new();
    }
    let order_identifier = order.identifier.clone();
    vec![Discrepancy::OrderAmountsChanged { order_identifier, order_paid_cents, units_paid_cents }]
}

fn line_changed(order: &Order, line: &OrderLine, units_paid_cents: i64) -> Option<Discrepancy> {
    let line_paid_cents = Amounts::of_line(line).paid();
    (line_paid_cents != units_paid_cents).then(|| Discrepancy::AmountsChanged {
        order_identifier: order.identifier.clone(),
        order_line_item_identifier: line.identifier.clone(),
        line_paid_cents,
        units_paid_cents,
    })
}
