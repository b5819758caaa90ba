//! The policies of lines, each made once for all units of a line.

use std::collections::HashMap;
use std::ptr;

use super::{LinePolicy, Offers, OrderPolicy, PolicyAt, UnitFacts, UnitPolicy};

/// Decides about many units. The conditions about an order or a line are checked at its first unit.
#[derive(Debug)]
pub struct LinePolicies<'a> {
    at: PolicyAt<'a>,
    orders: HashMap<OrderKey, OrderPolicy<'a>>,
    lines: HashMap<LineKey, LinePolicy<'a>>,
    /// The offers about the last unit. Most units of a line have the same.
    last: Option<(OfferedUnit<'a>, Offers)>,
}

/// The addresses of an order and the facts about its shopper, which are borrowed as long as the policies exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OrderKey {
    order: usize,
    shopper: usize,
}

/// The address of a line, which is borrowed as long as the policies exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LineKey {
    order: OrderKey,
    line: usize,
}

/// The facts on which the offers about a unit depend.
#[derive(Debug, PartialEq)]
struct OfferedUnit<'a> {
    line: LineKey,
    is_shipped: bool,
    rma_identifier: Option<&'a str>,
    is_refunded: bool,
    is_order_exchanged: bool,
    paid_amount_cents: i64,
    order_kept_cents: i64,
    has_variants: bool,
}

impl<'a> LinePolicies<'a> {
    pub fn new(at: PolicyAt<'a>) -> Self {
        Self { at, orders: HashMap::new(), lines: HashMap::new(), last: None }
    }

    /// The policy for one unit.
    pub fn unit(&mut self, facts: UnitFacts<'a>) -> UnitPolicy<'a> {
        let key = LineKey::of(&facts);
        let of_line = self.lines.entry(key).or_insert_with(|| {
            let of_order = self.orders.entry(key.order);
            of_order.or_insert_with(|| self.at.order(facts.order, facts.shopper)).line(facts.line)
        });
        of_line.unit(facts)
    }

    /// The choices that a shopper has for the unit. See [`UnitPolicy::offers`].
    pub fn offers(&mut self, facts: UnitFacts<'a>, has_variants: bool) -> Offers {
        let unit = OfferedUnit {
            line: LineKey::of(&facts),
            is_shipped: facts.is_shipped,
            rma_identifier: facts.rma_identifier,
            is_refunded: facts.is_refunded,
            is_order_exchanged: facts.is_order_exchanged,
            paid_amount_cents: facts.paid_amount_cents,
            order_kept_cents: facts.order_kept_cents,
            has_variants,
        };
        if let Some((last, offers)) = &self.last
            && *last == unit
        {
            return offers.clone();
        }
        let offers = self.unit(facts).offers(has_variants);
        self.last = Some((unit, offers.clone()));
        offers
    }

    /// The number of lines whose conditions were checked.
    #[cfg(test)]
    pub(super) fn checked_lines(&self) -> usize {
        self.lines.len()
    }
}

impl LineKey {
    fn of(facts: &UnitFacts<'_>) -> Self {
        let order = OrderKey { order: address(facts.order), shopper: address(facts.shopper) };
        Self { order, line: address(facts.line) }
    }
}

fn address<T>(value: &T) -> usize {
    ptr::from_ref(value).addr()
}
