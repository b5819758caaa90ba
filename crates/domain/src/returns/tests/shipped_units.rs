use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// The shipped units of one line, as a service stores them.
#[derive(Default, Clone)]
struct LineUnits(BTreeMap<i32, ShippedUnit>);

impl LineUnits {
    fn apply(&mut self, line: &OrderLine) -> UnitChanges {
        let changes = self.reconcile(&order("A", vec![line.clone()]));
        let LineChanges { added, removed } = &changes.lines["L1"];
        for unit in removed {
            self.0.remove(unit).unwrap();
        }
        for AddedUnit { unit, amounts } in added.iter().copied() {
            let replaced = self.0.insert(unit, ShippedUnit { unit, amounts, is_in_use: false });
            assert_eq!(replaced, None, "a number is used once");
        }
        changes
    }

    fn reconcile(&self, order: &Order) -> UnitChanges {
        let units = self.0.values().copied().collect();
        reconcile_units(order, &BTreeMap::from([("L1".to_owned(), units)]))
    }

    fn use_unit(&mut self, unit: i32) {
        self.0.get_mut(&unit).unwrap().is_in_use = true;
    }

    fn paid(&self) -> i64 {
        self.0.values().map(|unit| unit.amounts.paid()).sum()
    }
}

#[track_caller]
fn check(changes: &[UnitChanges], expected: Expect) {
    let lines = changes.iter().map(|change| {
        let LineChanges { added, removed } = &change.lines["L1"];
        let added = added.iter().map(|it| format!("+{}={} ", it.unit, it.amounts.paid()));
        let removed = removed.iter().map(|unit| format!("-{unit} "));
        let discrepancies = change.discrepancies.iter().map(|it| format!("{}: {it}", it.kind()));
        let line: String = added.chain(removed).chain(discrepancies).collect();
        format!("{}\n", line.trim_end())
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn units_are_added_when_they_ship_and_keep_their_amounts() {
    let mut line_units = LineUnits::default();
    check(
        &[
            line_units.apply(&line("L1", 0, amounts(0, 0, 0))),
            line_units.apply(&line("L1", 3, amounts(29000, 0, 0))),
            line_units.apply(&line("L1", 3, amounts(29000, 0, 0))),
            line_units.apply(&line("L1", 5, amounts(48000, 0, 1))),
        ],
        expect![[r#"

            +1=9667 +2=9667 +3=9666

            +4=9501 +5=9500
        "#]],
    );
}

#[test]
fn units_that_did_not_ship_are_removed_and_can_be_added_again() {
    let mut line_units = LineUnits::default();
    line_units.apply(&line("L1", 3, amounts(300, 0, 0)));
    line_units.use_unit(3);
    check(
        &[
            line_units.apply(&line("L1", 2, amounts(200, 0, 0))),
            line_units.apply(&line("L1", 3, amounts(310, 0, 0))),
            line_units.apply(&line("L1", 1, amounts(100, 0, 0))),
        ],
        expect![[r#"
            -2
            +2=110
            -2 -1
        "#]],
    );
}

#[test]
fn returned_units_are_not_removed() {
    let mut line_units = LineUnits::default();
    line_units.apply(&line("L1", 3, amounts(300, 0, 0)));
    line_units.use_unit(1);
    line_units.use_unit(2);
    let reduced = line("L1", 1, amounts(100, 0, 0));
    check(
        &[line_units.apply(&reduced), line_units.apply(&reduced)],
        expect![[r#"
            -3 shipped_quantity_reduced: line L1 of order A now has fewer shipped units (1) than are returned or refunded (2)
            shipped_quantity_reduced: line L1 of order A now has fewer shipped units (1) than are returned or refunded (2)
        "#]],
    );
    let without_line = order("A", vec![line("L2", 0, amounts(0, 0, 0))]);
    check(
        &[line_units.reconcile(&without_line)],
        expect![[r#"
            shipped_quantity_reduced: line L1 of order A now has fewer shipped units (0) than are returned or refunded (2)
        "#]],
    );
    assert_eq!(LineUnits::default().reconcile(&without_line).discrepancies, []);
}

#[test]
fn changed_amounts_are_a_discrepancy() {
    let mut line_units = LineUnits::default();
    line_units.apply(&line("L1", 2, amounts(200, 0, 0)));
    check(
        &[
            line_units.apply(&line("L1", 2, amounts(150, 0, 0))),
            line_units.apply(&line("L1", 3, amounts(150, 0, 0))),
        ],
        expect![[r#"
            amounts_changed: line L1 of order A is now 150 cents, but its units sum to 200 cents
            +3=0 amounts_changed: line L1 of order A is now 150 cents, but its units sum to 200 cents
        "#]],
    );
}

/// A snapshot of the line, and a unit that is returned after it.
fn snapshots() -> impl Strategy<Value = Vec<(i64, Amounts, Option<i32>)>> {
    let money = (0..5000i64, 0..6000i64, 0..500i64);
    let money = money.prop_map(|(product, discount, tax)| amounts(product, discount, tax));
    prop::collection::vec((0..8i64, money, prop::option::of(1..8i32)), 1..12)
}

proptest! {
    #[test]
    fn any_sequence_of_snapshots_keeps_the_units_consistent(snapshots in snapshots()) {
        let mut line_units = LineUnits::default();
        for (shipped, all, returned) in snapshots {
            let line = line("L1", shipped, all);
            let before = line_units.clone();
            let changes = line_units.apply(&line);

            let count = i64::try_from(line_units.0.len()).unwrap();
            let in_use = line_units.0.values().filter(|unit| unit.is_in_use).count();
            prop_assert_eq!(count, shipped.max(i64::try_from(in_use).unwrap()));
            for (number, unit) in before.0 {
                match line_units.0.get(&number) {
                    Some(after) => prop_assert_eq!(*after, unit, "amounts never change"),
                    None => prop_assert!(!unit.is_in_use, "a returned unit is kept"),
                }
            }
            let has_discrepancy = !changes.discrepancies.is_empty();
            prop_assert!(has_discrepancy || count == 0 || line_units.paid() == Amounts::of_line(&line).paid());

            let again = line_units.apply(&line);
            prop_assert_eq!(&again.lines["L1"], &LineChanges::default());
            prop_assert_eq!(again.discrepancies, changes.discrepancies);
            if let Some(unit) = returned.filter(|unit| line_units.0.contains_key(unit)) {
                line_units.use_unit(unit);
            }
        }
    }

    #[test]
    fn a_growing_line_is_always_split_exactly(
        steps in prop::collection::vec((1..4i64, 0..5000i64, 0..500i64, 0..500i64), 1..8),
    ) {
        let mut line_units = LineUnits::default();
        let mut shipped = 0;
        let mut all = Amounts::default();
        for (more, product, discount, tax) in steps {
            shipped += more;
            let step = amounts(product, discount.min(product), tax);
            all = [all, step].into_iter().sum();
            let changes = line_units.apply(&line("L1", shipped, all));
            prop_assert_eq!(changes.discrepancies, Vec::new());
            prop_assert_eq!(line_units.0.values().map(|unit| unit.amounts).sum::<Amounts>(), all);
        }
    }
}
