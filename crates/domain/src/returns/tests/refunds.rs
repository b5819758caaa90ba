use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::order::{IGNORE_REFUND, Refund, RefundLine};

fn refund(identifier: &str, rma: Option<&str>, lines: &[(&str, i64)]) -> Refund {
    let line = |(order_item, quantity): &(&str, i64)| RefundLine {
        identifier: format!("{identifier}-{order_item}"),
        quantity: *quantity,
        order_item_identifier: (*order_item).to_owned(),
    };
    Refund {
        identifier: identifier.to_owned(),
        total_refund_amount_cents: 0,
        refund_line_items: lines.iter().map(line).collect(),
        note: None,
        created_at: minute(0),
        rma_identifier: rma.map(str::to_owned),
        tags: Vec::new(),
    }
}

/// Two lines of three shipped units each; one more unit of the second was canceled.
fn order_with(refunds: Vec<Refund>) -> Order {
    let canceled =
        OrderLine { quantity: 4, quantity_canceled: 1, ..line("L2", 3, amounts(3000, 0, 0)) };
    let items = vec![line("L1", 3, amounts(3000, 0, 0)), canceled];
    Order { refunds, ..order("A", items) }
}

fn loose(paths: &[&str]) -> Vec<CandidateUnit> {
    let known =
        |path: &&str| CandidateUnit { id: unit(path), is_returned: false, refunded_by: None };
    paths.iter().map(known).collect()
}

/// Everything on the ledger: the units of these returns, and those that are in none.
fn known(returns: &[Rma], free: &[&str]) -> Vec<CandidateUnit> {
    let returned = returns.iter().flat_map(|rma| &rma.units).map(|unit| CandidateUnit {
        id: unit.id.clone(),
        is_returned: true,
        refunded_by: unit.refunded_by.as_deref().map(Into::into),
    });
    returned.chain(loose(free)).collect()
}

/// Returns as refunds see them.
fn seen(returns: &[Rma]) -> Vec<CandidateReturn> {
    returns.iter().map(|rma| CandidateReturn::new(rma, |_| true)).collect()
}

/// Notes on the ledger what refunds cover.
fn note(units: &mut [CandidateUnit], covered: &[RefundedUnit]) {
    for unit in units {
        let cover = covered.iter().find(|it| it.unit == unit.id);
        unit.refunded_by = cover.map(|it| it.refund_identifier.clone()).or(unit.refunded_by.take());
    }
}

/// What some refunds of an order paid.
fn paid_by(order: &Order, is_settled: impl Fn(&str) -> bool) -> Vec<(&str, RefundedQuantities)> {
    let settled = order.refunds.iter().filter(|refund| is_settled(&refund.identifier));
    settled.map(|refund| (refund.identifier.as_str(), refunded_quantities(refund))).collect()
}

fn before<'a>(paid: &'a [(&'a str, RefundedQuantities)]) -> MatchedRefunds<'a> {
    paid.iter().map(|(refund, paid)| (*refund, paid)).collect()
}

fn written(matches: &RefundMatches) -> String {
    let covered = matches.refunded_units.iter().map(|it| {
        let rma = it.rma_identifier.as_deref().unwrap_or("no return");
        format!("{} covers {} in {rma}\n", it.refund_identifier, path(&it.unit))
    });
    let odd = matches.discrepancies.iter().map(|it| format!("{}: {it}\n", it.kind()));
    covered.chain(odd).collect()
}

#[track_caller]
fn check(refunds: Vec<Refund>, returns: &[Rma], free: &[&str], expected: Expect) {
    let units = known(returns, free);
    let matches =
        match_refunds(&order_with(refunds), &MatchedRefunds::new(), &seen(returns), &units);
    expected.assert_eq(&written(&matches));
}

fn older_and_newer() -> [Rma; 2] {
    let older = rma("RMA-2", &["A/L1/1", "A/L2/1"]);
    let newer = Rma { created_at: minute(5), ..rma("RMA-1", &["A/L1/2"]) };
    [newer, older]
}

#[test]
fn a_refund_goes_to_the_return_it_names() {
    check(
        vec![refund("R1", Some("RMA-1"), &[("L1", 1)])],
        &older_and_newer(),
        &[],
        expect![[r#"
        R1 covers A/L1/2 in RMA-1
    "#]],
    );
}

#[test]
fn a_refund_that_names_none_goes_to_the_oldest_first() {
    let all =
        || vec![refund("R1", None, &[("L1", 1)]), refund("R2", None, &[("L1", 1), ("L2", 1)])];
    check(
        all(),
        &older_and_newer(),
        &["A/L1/3"],
        expect![[r#"
        R1 covers A/L1/1 in RMA-2
        R2 covers A/L1/2 in RMA-1
        R2 covers A/L2/1 in RMA-2
    "#]],
    );
}

#[test]
fn what_no_return_claims_was_for_canceled_units_and_then_for_loose_ones() {
    let refunds = || vec![refund("R1", None, &[("L2", 2)]), refund("R2", None, &[("L2", 2)])];
    check(
        refunds(),
        &older_and_newer(),
        &["A/L2/3", "A/L2/2"],
        expect![[r#"
        R1 covers A/L2/1 in RMA-2
        R2 covers A/L2/2 in no return
        R2 covers A/L2/3 in no return
    "#]],
    );
    check(
        vec![refund("R1", None, &[("L2", 4)])],
        &[],
        &["A/L2/1", "A/L2/2"],
        expect![[r#"
            R1 covers A/L2/1 in no return
            R1 covers A/L2/2 in no return
            refund_exceeds_line: refund R1 covers more units than its line has left, by 1
        "#]],
    );
}

#[test]
fn canceled_units_are_refunded_once() {
    let first = refund("R1", None, &[("L2", 1)]);
    let order = order_with(vec![first, refund("R2", None, &[("L2", 1)])]);
    let free = loose(&["A/L2/1"]);
    let settled = paid_by(&order, |refund| refund == "R1");
    // Also when the merchant no longer speaks of the first.
    let forgetful = Order { refunds: order.refunds[1..].to_vec(), ..order.clone() };
    for order in [&order, &forgetful] {
        let second = match_refunds(order, &before(&settled), &[], &free);
        expect![[r#"
            R2 covers A/L2/1 in no return
        "#]]
        .assert_eq(&written(&second));
    }
}

#[test]
fn two_lines_of_a_refund_for_one_line_of_the_order_are_one() {
    // A unit that shipped and the canceled one: nothing is left for the second refund to use up
    // but what shipped.
    let first = refund("R1", None, &[("L2", 1), ("L2", 1)]);
    let order = order_with(vec![first, refund("R2", None, &[("L2", 1)])]);
    let mut units = loose(&["A/L2/1", "A/L2/2"]);
    units[0].refunded_by = Some("R1".into());
    let settled = paid_by(&order, |refund| refund == "R1");
    let second = match_refunds(&order, &before(&settled), &[], &units);
    expect![[r#"
        R2 covers A/L2/2 in no return
    "#]]
    .assert_eq(&written(&second));
    let exceeding = vec![refund("R1", None, &[("L1", 2), ("L1", 2)])];
    check(
        exceeding,
        &[],
        &["A/L1/1", "A/L1/2"],
        expect![[r#"
            R1 covers A/L1/1 in no return
            R1 covers A/L1/2 in no return
            refund_exceeds_line: refund R1 covers more units than its line has left, by 2
        "#]],
    );
}

#[test]
fn what_was_refunded_before_it_shipped_is_refunded_when_it_ships() {
    let refunds = vec![refund("R1", None, &[("L1", 2)]), refund("R2", None, &[("L1", 1)])];
    let order = order_with(refunds);
    let mut units = loose(&["A/L1/1"]);
    let early = match_refunds(&order, &MatchedRefunds::new(), &[], &units);
    note(&mut units, &early.refunded_units);
    // The snapshots that follow leave the refunds out.
    let forgetful = order_with(Vec::new());
    let mut shipped = |more: &[&str], seen: &[&str]| {
        units.extend(loose(more));
        let settled = paid_by(&order, |refund| seen.contains(&refund));
        let covered = match_unallocated_refunds(&forgetful, &before(&settled), &units);
        note(&mut units, &covered);
        written(&RefundMatches { refunded_units: covered, discrepancies: Vec::new() })
    };
    let all = ["R1", "R2"];
    assert_eq!(shipped(&[], &all), "");
    assert_eq!(shipped(&["A/L2/1", "A/L1/2"], &all), "R1 covers A/L1/2 in no return\n");
    assert_eq!(shipped(&["A/L1/3"], &["R1"]), "", "R2 is still to be matched");
    assert_eq!(shipped(&[], &all), "R2 covers A/L1/3 in no return\n");
    assert_eq!(shipped(&["A/L1/4"], &all), "");
}

#[test]
fn canceled_and_returned_units_are_no_remainder() {
    let order = order_with(vec![refund("R1", None, &[("L2", 2)])]);
    let returned = known(&[rma("RMA-1", &["A/L2/1"])], &["A/L2/2", "A/L2/3"]);
    let covered = match_unallocated_refunds(&order, &before(&paid_by(&order, |_| true)), &returned);
    let units: Vec<_> = covered.iter().map(|it| path(&it.unit)).collect();
    assert_eq!(units, ["A/L2/2"], "one of the two was for the canceled unit");
}

#[test]
fn a_refund_that_names_what_is_not_there_is_noticed() {
    let refunds = vec![refund("R1", Some("RMA-9"), &[("L1", 1)])];
    check(
        refunds,
        &older_and_newer(),
        &["A/L1/3"],
        expect![[r#"
        R1 covers A/L1/3 in no return
        refund_of_unknown_return: refund R1 names the unknown return RMA-9
    "#]],
    );
    let refunds = vec![refund("R1", Some("RMA-1"), &[("L1", 2), ("L2", 1)])];
    check(
        refunds,
        &older_and_newer(),
        &["A/L1/3"],
        expect![[r#"
            R1 covers A/L1/2 in RMA-1
            R1 covers A/L1/3 in no return
            refund_exceeds_return: refund R1 covers more units than return RMA-1 has left, by 1
            refund_exceeds_return: refund R1 covers more units than return RMA-1 has left, by 1
        "#]],
    );
    let mut canceled = rma("RMA-3", &["A/L1/1"]);
    canceled.cancel(None, minute(1)).unwrap();
    let refunds = vec![refund("R1", Some("RMA-3"), &[("L1", 1)])];
    check(
        refunds,
        &[canceled],
        &["A/L1/1"],
        expect![[r#"
        R1 covers A/L1/1 in no return
        refund_of_canceled_return: refund R1 names the canceled return RMA-3
    "#]],
    );
}

#[test]
fn some_refunds_touch_nothing() {
    let ignored =
        Refund { tags: vec![IGNORE_REFUND.to_owned()], ..refund("R1", None, &[("L1", 1)]) };
    let amount_only = refund("R2", Some("RMA-1"), &[]);
    check(vec![ignored, amount_only], &older_and_newer(), &["A/L1/3"], expect![[""]]);
    let order = order_with(vec![refund("R1", None, &[("L1", 1)])]);
    let found =
        match_refunds(&order, &before(&paid_by(&order, |_| true)), &seen(&older_and_newer()), &[]);
    assert_eq!(found, RefundMatches::default());
}

#[test]
fn what_the_shopper_wants_refunded_comes_before_what_is_exchanged() {
    let units =
        [("A/L1/1", variant(1000)), ("A/L1/2", Resolution::Refund), ("A/L1/3", Resolution::Refund)];
    let mut rma = rma_of("RMA-1", ReturnMethod::MailBack, &units, &settings(true));
    let arrived = Finding::Received { unit: unit("A/L1/3") };
    rma.receive(&Receipt { findings: vec![arrived] }, minute(1)).unwrap();
    let one_by_one = (1..=3).map(|number| refund(&format!("R{number}"), None, &[("L1", 1)]));
    check(
        one_by_one.collect(),
        &[rma],
        &[],
        expect![[r#"
        R1 covers A/L1/3 in RMA-1
        R2 covers A/L1/2 in RMA-1
        R3 covers A/L1/1 in RMA-1
    "#]],
    );
}

proptest! {
    #[test]
    fn a_unit_is_covered_once_however_refunds_arrive(
        wanted in prop::collection::vec(
            (0..3usize, prop::collection::vec((0..2usize, 1..3i64), 1..3)),
            0..8,
        ),
        cut in 0..8usize,
    ) {
        let names = [None, Some("RMA-1"), Some("RMA-9")];
        let refunds: Vec<_> = wanted
            .iter()
            .zip(1..)
            .map(|((name, lines), number)| {
                let lines: Vec<_> =
                    lines.iter().map(|(line, units)| (["L1", "L2"][*line], *units)).collect();
                refund(&format!("R{number}"), names[*name], &lines)
            })
            .collect();
        let order = order_with(refunds.clone());
        let mut returns = older_and_newer();
        let mut ledger = known(&returns, &["A/L1/3", "A/L2/2", "A/L2/3"]);
        let none = MatchedRefunds::new();
        let at_once = match_refunds(&order, &none, &seen(&returns), &ledger);

        // The same in two snapshots, whether the second repeats the first or not.
        let cut = cut.min(refunds.len());
        let is_early = |refund: &str| refunds[..cut].iter().any(|it| it.identifier == refund);
        let first = order_with(refunds[..cut].to_vec());
        let mut covered = match_refunds(&first, &none, &seen(&returns), &ledger).refunded_units;
        for rma in &mut returns {
            rma.refund(&covered, minute(9)).unwrap();
        }
        note(&mut ledger, &covered);
        let settled = paid_by(&order, is_early);
        let second = match_refunds(&order, &before(&settled), &seen(&returns), &ledger);
        let mut noted = seen(&older_and_newer());
        for it in &covered {
            let rma = noted.iter_mut().find(|rma| Some(&rma.rma_identifier) == it.rma_identifier.as_ref());
            rma.into_iter().for_each(|rma| rma.mark_refunded(&it.unit));
        }
        prop_assert_eq!(&match_refunds(&order, &before(&settled), &noted, &ledger), &second);
        let forgetful = order_with(refunds[cut..].to_vec());
        prop_assert_eq!(&match_refunds(&forgetful, &before(&settled), &seen(&returns), &ledger), &second);
        covered.extend(second.refunded_units);
        prop_assert_eq!(&covered, &at_once.refunded_units);

        let mut units: Vec<_> = covered.iter().map(|it| &it.unit).collect();
        let count = units.len();
        units.sort();
        units.dedup();
        prop_assert_eq!(units.len(), count);
    }
}
