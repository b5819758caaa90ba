use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// The ledger of one line, as a service keeps it.
#[derive(Default, Clone)]
struct Ledger(BTreeMap<i32, ShippedUnit>);

impl Ledger {
    fn apply(&mut self, line: &OrderLine) -> UnitChanges {
        let known: Vec<_> = self.0.values().copied().collect();
        let change = reconcile_line("A", line, &known);
        for unit in &change.removed {
            self.0.remove(unit).unwrap();
        }
        for AddedUnit { unit, amounts } in change.added.iter().copied() {
            let taken = self.0.insert(unit, ShippedUnit { unit, amounts, is_in_use: false });
            assert_eq!(taken, None, "a number is used once");
        }
        change
    }

    fn hold(&mut self, unit: i32) {
        self.0.get_mut(&unit).unwrap().is_in_use = true;
    }

    fn paid(&self) -> i64 {
        self.0.values().map(|unit| unit.amounts.paid()).sum()
    }
}

#[track_caller]
fn check(changes: &[UnitChanges], expected: Expect) {
    let written = changes.iter().map(|change| {
        let units = change.added.iter().map(|it| format!("+{}={} ", it.unit, it.amounts.paid()));
        let gone = change.removed.iter().map(|unit| format!("-{unit} "));
        let odd = change.discrepancies.iter().map(|it| format!("{}: {it}", it.kind()));
        let words: String = units.chain(gone).chain(odd).collect();
        format!("{}\n", words.trim_end())
    });
    expected.assert_eq(&written.collect::<String>());
}

#[test]
fn units_appear_when_they_ship_and_keep_their_amounts() {
    let mut ledger = Ledger::default();
    check(
        &[
            ledger.apply(&line("L1", 0, amounts(0, 0, 0))),
            ledger.apply(&line("L1", 3, amounts(29000, 0, 0))),
            ledger.apply(&line("L1", 3, amounts(29000, 0, 0))),
            ledger.apply(&line("L1", 5, amounts(48000, 0, 1))),
        ],
        expect![[r#"

            +1=9667 +2=9667 +3=9666

            +4=9501 +5=9500
        "#]],
    );
}

#[test]
fn what_did_not_ship_after_all_is_withdrawn_and_may_come_back() {
    let mut ledger = Ledger::default();
    ledger.apply(&line("L1", 3, amounts(300, 0, 0)));
    ledger.hold(3);
    check(
        &[
            ledger.apply(&line("L1", 2, amounts(200, 0, 0))),
            ledger.apply(&line("L1", 3, amounts(310, 0, 0))),
            ledger.apply(&line("L1", 1, amounts(100, 0, 0))),
        ],
        expect![[r#"
            -2
            +2=110
            -2 -1
        "#]],
    );
}

#[test]
fn what_is_returned_is_not_taken_away() {
    let mut ledger = Ledger::default();
    ledger.apply(&line("L1", 3, amounts(300, 0, 0)));
    ledger.hold(1);
    ledger.hold(2);
    let shrunk = line("L1", 1, amounts(100, 0, 0));
    check(
        &[ledger.apply(&shrunk), ledger.apply(&shrunk)],
        expect![[r#"
            -3 shipped_quantity_reduced: line L1 of order A now says that fewer units shipped (1) than are returned or refunded (2)
            shipped_quantity_reduced: line L1 of order A now says that fewer units shipped (1) than are returned or refunded (2)
        "#]],
    );
    let known: Vec<_> = ledger.0.values().copied().collect();
    check(
        &[reconcile_missing_line("A", "L1", &known)],
        expect![[r#"
            shipped_quantity_reduced: line L1 of order A now says that fewer units shipped (0) than are returned or refunded (2)
        "#]],
    );
    assert_eq!(reconcile_missing_line("A", "L1", &[]), UnitChanges::default());
}

#[test]
fn amounts_that_change_afterwards_are_noticed() {
    let mut ledger = Ledger::default();
    ledger.apply(&line("L1", 2, amounts(200, 0, 0)));
    check(
        &[
            ledger.apply(&line("L1", 2, amounts(150, 0, 0))),
            ledger.apply(&line("L1", 3, amounts(150, 0, 0))),
        ],
        expect![[r#"
            amounts_changed: line L1 of order A now says 150 cents, but its units were given 200
            +3=0 amounts_changed: line L1 of order A now says 150 cents, but its units were given 200
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
    fn any_snapshots_leave_a_sound_ledger(snapshots in snapshots()) {
        let mut ledger = Ledger::default();
        for (shipped, all, returned) in snapshots {
            let line = line("L1", shipped, all);
            let before = ledger.clone();
            let change = ledger.apply(&line);

            let units = i64::try_from(ledger.0.len()).unwrap();
            let is_in_use = ledger.0.values().filter(|unit| unit.is_in_use).count();
            prop_assert_eq!(units, shipped.max(i64::try_from(is_in_use).unwrap()));
            for (number, unit) in before.0 {
                match ledger.0.get(&number) {
                    Some(now) => prop_assert_eq!(*now, unit, "what was given stays"),
                    None => prop_assert!(!unit.is_in_use, "what is returned stays"),
                }
            }
            let is_said = !change.discrepancies.is_empty();
            prop_assert!(is_said || units == 0 || ledger.paid() == Amounts::of_line(&line).paid());

            let again = ledger.apply(&line);
            prop_assert!(again.added.is_empty() && again.removed.is_empty());
            prop_assert_eq!(again.discrepancies, change.discrepancies);
            if let Some(unit) = returned.filter(|unit| ledger.0.contains_key(unit)) {
                ledger.hold(unit);
            }
        }
    }

    #[test]
    fn a_line_that_only_grows_is_always_divided_exactly(
        steps in prop::collection::vec((1..4i64, 0..5000i64, 0..500i64, 0..500i64), 1..8),
    ) {
        let mut ledger = Ledger::default();
        let (mut shipped, mut all) = (0, Amounts::default());
        for (more, product, discount, tax) in steps {
            shipped += more;
            let step = amounts(product, discount.min(product), tax);
            all = [all, step].into_iter().sum();
            let change = ledger.apply(&line("L1", shipped, all));
            prop_assert_eq!(change.discrepancies, Vec::new());
            prop_assert_eq!(ledger.0.values().map(|unit| unit.amounts).sum::<Amounts>(), all);
        }
    }
}
