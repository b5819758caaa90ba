//! The lines of an order, for the checks of its refunds and sums.

use std::collections::HashMap;

use crate::json::Object;

/// The lines of an order by identifier, with their units and sums. Invalid lines are included, so
/// that an invalid line causes no further errors in refunds and sums. The default is an index of
/// lines that could not be read at all.
#[derive(Debug, Default)]
pub(super) struct LineIndex {
    /// The units of each line with a valid identifier. `None` when the quantity is invalid.
    lines: HashMap<String, Option<LineUnits>>,
    all_identifiers_valid: bool,
    /// The sums over all lines. `None` when an amount is invalid.
    product_amount: Option<i64>,
    tax_amount: Option<i64>,
    discount_amount: Option<i64>,
    /// The sum of all valid quantities.
    units: i64,
}

/// The units of a line and the amount that was paid for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineUnits {
    pub(super) quantity: i64,
    shipped: i64,
    /// The amount that was paid for the shipped units.
    paid: i64,
}

/// The result of looking up a line.
pub(super) enum LineLookup {
    Known(LineUnits),
    Unknown,
    /// The line itself is invalid, or an invalid line could be the one.
    Invalid,
}

impl LineUnits {
    /// The units of a line with its product, tax and discount amounts. An invalid amount counts as
    /// nothing shipped.
    pub(super) fn new(quantity: i64, shipped: Option<i64>, amounts: [Option<i64>; 3]) -> Self {
        match (shipped, amounts) {
            (Some(shipped), [Some(product), Some(tax), Some(discount)]) => {
                Self { quantity, shipped, paid: (product + tax - discount).max(0) }
            }
            _ => Self { quantity, shipped: 0, paid: 0 },
        }
    }

    /// The most that was paid for some units. The odd cents of a line are in the amounts of its first units, as
    /// in [`Amounts::split`](crate::returns::Amounts::split). `None` for more units than were shipped: the
    /// amounts of a line are those of its shipped units.
    pub(super) fn paid_for(self, units: i64) -> Option<i64> {
        let Self { shipped, paid, .. } = self;
        let share = paid.checked_div(shipped)?;
        let odd_cents = paid.checked_rem(shipped)?;
        (units <= shipped).then(|| share * units + odd_cents.min(units))
    }
}

impl LineIndex {
    pub(super) fn new() -> Self {
        Self {
            lines: HashMap::new(),
            all_identifiers_valid: true,
            product_amount: Some(0),
            tax_amount: Some(0),
            discount_amount: Some(0),
            units: 0,
        }
    }

    pub(super) fn find(&self, identifier: &str) -> LineLookup {
        match self.lines.get(identifier) {
            Some(Some(units)) => LineLookup::Known(*units),
            None if self.all_identifiers_valid => LineLookup::Unknown,
            _ => LineLookup::Invalid,
        }
    }

    pub(super) fn product_amount(&self) -> Option<i64> {
        self.product_amount
    }

    pub(super) fn tax_amount(&self) -> Option<i64> {
        self.tax_amount
    }

    pub(super) fn discount_amount(&self) -> Option<i64> {
        self.discount_amount
    }

    pub(super) fn units(&self) -> i64 {
        self.units
    }

    /// Whether every unit of every line is shipped. False when a line is invalid.
    pub(super) fn is_shipped(&self) -> bool {
        let mut lines = self.lines.values();
        let is_shipped = |units: &LineUnits| units.shipped == units.quantity;
        self.all_identifiers_valid && lines.all(|units| units.as_ref().is_some_and(is_shipped))
    }

    pub(super) fn add(
        &mut self,
        line: &Object<'_>,
        identifier: Option<&String>,
        units: Option<LineUnits>,
    ) {
        self.units += units.map_or(0, |units| units.quantity);
        match identifier {
            Some(identifier) if self.lines.contains_key(identifier) => {
                line.invalid("identifier", "another line of this order has the same identifier");
            }
            Some(identifier) => {
                self.lines.insert(identifier.clone(), units);
            }
            None => self.all_identifiers_valid = false,
        }
    }

    pub(super) fn add_non_object(&mut self) {
        self.all_identifiers_valid = false;
        self.add_amounts([None; 3]);
    }

    /// Adds the product, tax and discount amounts of a line.
    pub(super) fn add_amounts(&mut self, [product, tax, discount]: [Option<i64>; 3]) {
        let sum = |sum: Option<i64>, amount: Option<i64>| sum?.checked_add(amount?);
        self.product_amount = sum(self.product_amount, product);
        self.tax_amount = sum(self.tax_amount, tax);
        self.discount_amount = sum(self.discount_amount, discount);
    }
}
