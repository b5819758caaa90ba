//! Discounts of an order that no line carries.

use proptest::prelude::*;

use super::*;

/// The shipped units of an order, as a service stores them.
#[derive(Default)]
struct Units(BTreeMap<String, Vec<ShippedUnit>>);

impl Units {
    fn apply(&mut self, order: &Order) -> Vec<Discrepancy> {
        let UnitChanges { lines, discrepancies } = reconcile_units(order, &self.0);
        for (line, LineChanges { added, removed }) in lines {
            let units = self.0.entry(line).or_default();
            units.retain(|it| !removed.contains(&it.unit));
            let shipped =
                |AddedUnit { unit, amounts }| ShippedUnit { unit, amounts, is_in_use: false };
            units.extend(added.into_iter().map(shipped));
        }
        discrepancies
    }

    fn paid(&self, line: &str) -> Vec<i64> {
        self.0[line].iter().map(|it| it.amounts.paid()).collect()
    }

    fn total(&self) -> i64 {
        self.0.keys().flat_map(|line| self.paid(line)).sum()
    }
}

fn discounted(discount_amount_cents: i64, items: Vec<OrderLine>) -> Order {
    Order { discount_amount_cents, ..order("A", items) }
}

#[test]
fn the_discount_is_spread_over_the_lines_in_proportion_to_their_amounts() {
    let lines = || vec![line("L1", 2, amounts(2000, 0, 0)), line("L2", 1, amounts(1000, 100, 100))];
    let mut units = Units::default();
    assert_eq!(units.apply(&discounted(401, lines())), []);
    // 301 of 3000: 200.67 and 100.33.
    assert_eq!((units.paid("L1"), units.paid("L2")), (vec![900, 899], vec![900]));
    assert_eq!(units.apply(&discounted(401, lines())), []);
    let mut without = Units::default();
    without.apply(&order("A", lines()));
    assert_eq!((without.paid("L1"), without.paid("L2")), (vec![1000, 1000], vec![1000]));
}

#[test]
fn units_keep_their_part_and_the_rest_is_spread_over_later_units() {
    let first = line("L1", 1, amounts(1000, 0, 0));
    let mut units = Units::default();
    units.apply(&discounted(1200, vec![first.clone(), line("L2", 0, amounts(0, 0, 0))]));
    assert_eq!(units.paid("L1"), [0]);
    let second = line("L2", 2, amounts(2000, 0, 0));
    assert_eq!(units.apply(&discounted(1200, vec![first.clone(), second.clone()])), []);
    assert_eq!((units.paid("L1"), units.paid("L2")), (vec![0], vec![900, 900]));
    let found = units.apply(&discounted(1300, vec![first, second]));
    let expected = "order A is now 1700 cents after its discount, but its units sum to 1800 cents";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn the_discount_of_a_line_that_has_not_shipped_stays_with_it() {
    let first = line("L1", 1, amounts(10_000, 0, 0));
    let waiting = OrderLine { quantity_shipped: 0, ..line("L2", 1, amounts(0, 500, 0)) };
    let mut units = Units::default();
    assert_eq!(units.apply(&discounted(500, vec![first.clone(), waiting])), []);
    assert_eq!(units.paid("L1"), [10_000]);
    let shipped = line("L2", 1, amounts(5000, 500, 0));
    assert_eq!(units.apply(&discounted(500, vec![first, shipped])), []);
    assert_eq!((units.paid("L1"), units.paid("L2")), (vec![10_000], vec![4500]));
}

#[test]
fn a_line_that_ships_later_gets_its_part_then() {
    let lines = |shipped| {
        let second = OrderLine { quantity_shipped: shipped, ..line("L2", 1, amounts(1000, 0, 0)) };
        vec![line("L1", 1, amounts(1000, 0, 0)), second]
    };
    let mut units = Units::default();
    assert_eq!(units.apply(&discounted(200, lines(0))), []);
    assert_eq!(units.paid("L1"), [900]);
    assert_eq!(units.apply(&discounted(200, lines(1))), []);
    assert_eq!((units.paid("L1"), units.paid("L2")), (vec![900], vec![900]));
}

/// How a line grows: units, product, discount and tax.
type Growth = (i64, i64, i64, i64);

/// How an order grows in each step: its lines and its discount.
fn steps() -> impl Strategy<Value = Vec<(Vec<Growth>, i64)>> {
    let line = (0..4i64, 0..5000i64, 0..6000i64, 0..500i64);
    prop::collection::vec((prop::collection::vec(line, 3), 0..8000i64), 1..6)
}

proptest! {
    #[test]
    fn units_never_sum_to_more_than_the_order_after_its_discount(steps in steps()) {
        let mut units = Units::default();
        let mut lines = [(0, Amounts::default()); 3];
        let mut discount = 0;
        for (step, more_discount) in steps {
            for ((shipped, all), (more, product, line_discount, tax)) in lines.iter_mut().zip(step) {
                if more > 0 {
                    *shipped += more;
                    *all = [*all, amounts(product, line_discount, tax)].into_iter().sum();
                }
            }
            discount += more_discount;
            let items = lines.iter().zip(["L1", "L2", "L3"]);
            let items: Vec<_> = items.map(|((shipped, all), name)| line(name, *shipped, *all)).collect();
            let on_lines: i64 = items.iter().map(|it| it.discount_amount_cents).sum();
            let order = discounted(on_lines + discount, items);
            let before = units.0.clone();
            let found = units.apply(&order);
            for (line, known) in before {
                prop_assert_eq!(&known[..], &units.0[&line][..known.len()], "amounts never change");
            }
            let all = order.product_amount_cents + order.tax_amount_cents;
            let paid = (all - order.discount_amount_cents).max(0);
            let is_exact = units.0.values().all(Vec::is_empty) || units.total() == paid;
            prop_assert!(is_exact || !found.is_empty(), "{} of {paid}", units.total());
            prop_assert!(units.0.values().flatten().all(|it| it.amounts.discount_amount_cents
                <= it.amounts.product_amount_cents + it.amounts.tax_amount_cents));
            prop_assert_eq!(units.apply(&order), found, "the same snapshot changes nothing");
        }
    }

    #[test]
    fn the_first_snapshot_is_always_split_exactly(
        lines in prop::collection::vec((1..5i64, 0..5000i64, 0..6000i64, 0..500i64), 1..6), discount in 0..20_000i64,
    ) {
        let items = lines.iter().enumerate().map(|(at, (shipped, product, line_discount, tax))| {
            line(&format!("L{at}"), *shipped, amounts(*product, *line_discount, *tax))
        });
        let order = order("A", items.collect());
        let order = Order { discount_amount_cents: order.discount_amount_cents + discount, ..order };
        let mut units = Units::default();
        prop_assert_eq!(units.apply(&order), Vec::new());
        let all = order.product_amount_cents + order.tax_amount_cents;
        prop_assert_eq!(units.total(), (all - order.discount_amount_cents).max(0));
    }
}
