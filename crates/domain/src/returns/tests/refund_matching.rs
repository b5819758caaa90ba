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

fn unreturned(paths: &[&str]) -> Vec<CandidateUnit> {
    let candidate =
        |path: &&str| CandidateUnit { id: unit(path), is_returned: false, refunded_by: None };
    paths.iter().map(candidate).collect()
}

/// All shipped units: those of the returns, and those in no return.
fn candidate_units(returns: &[Rma], free: &[&str]) -> Vec<CandidateUnit> {
    let returned = returns.iter().flat_map(|rma| &rma.units).map(|unit| CandidateUnit {
        id: unit.id.clone(),
        is_returned: true,
        refunded_by: unit.refunded_by.as_deref().map(Into::into),
    });
    returned.chain(unreturned(free)).collect()
}

fn candidate_returns(returns: &[Rma]) -> Vec<CandidateReturn> {
    returns.iter().map(|rma| CandidateReturn::new(rma, |_| true)).collect()
}

fn mark_refunded(units: &mut [CandidateUnit], refunded: &[RefundedUnit]) {
    for unit in units {
        let refund = refunded.iter().find(|it| it.unit == unit.id);
        unit.refunded_by =
            refund.map(|it| it.refund_identifier.clone()).or(unit.refunded_by.take());
    }
}

/// The quantities of some refunds of an order.
fn quantities_of(
    order: &Order,
    is_selected: impl Fn(&str) -> bool,
) -> Vec<(&str, RefundedQuantities)> {
    let refunds = order.refunds.iter().filter(|refund| is_selected(&refund.identifier));
    refunds.map(|refund| (refund.identifier.as_str(), refunded_quantities(refund))).collect()
}

fn matched<'a>(quantities: &'a [(&'a str, RefundedQuantities)]) -> MatchedRefunds<'a> {
    quantities.iter().map(|(refund, quantities)| (*refund, quantities)).collect()
}

fn summary_of(matches: &RefundMatches) -> String {
    let refunded = matches.refunded_units.iter().map(|it| {
        let rma = it.rma_identifier.as_deref().unwrap_or("no return");
        format!("{} covers {} in {rma}\n", it.refund_identifier, path(&it.unit))
    });
    let discrepancies = matches.discrepancies.iter().map(|it| format!("{}: {it}\n", it.kind()));
    refunded.chain(discrepancies).collect()
}

#[track_caller]
fn check(refunds: Vec<Refund>, returns: &[Rma], free: &[&str], expected: Expect) {
    let units = candidate_units(returns, free);
    let matches = match_refunds(
        &order_with(refunds),
        &MatchedRefunds::new(),
        &candidate_returns(returns),
        &units,
    );
    expected.assert_eq(&summary_of(&matches));
}

fn older_and_newer() -> [Rma; 2] {
    let older = rma("RMA-2", &["A/L1/1", "A/L2/1"]);
    let newer = Rma { created_at: minute(5), ..rma("RMA-1", &["A/L1/2"]) };
    [newer, older]
}

#[test]
fn a_refund_covers_units_of_the_return_it_names() {
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
fn a_refund_without_a_return_covers_the_oldest_return_first() {
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
fn a_refund_is_not_matched_with_a_return_that_waits_for_review() {
    let settings = settings(true);
    let units = [("A/L1/1", Resolution::Refund)];
    let review = reviews::review(&settings);
    let mut waiting =
        rma_in_review("RMA-1", ReturnMethod::MailBack, &units, &settings, Some(&review));
    let refunds =
        || vec![refund("R1", Some("RMA-1"), &[("L1", 1)]), refund("R2", None, &[("L1", 1)])];
    let takes_refunds = |rma: &Rma| CandidateReturn::new(rma, |_| true).takes_refunds();
    assert!(!takes_refunds(&waiting));
    check(
        refunds(),
        &[waiting.clone()],
        &[],
        expect![[r#"
            refund_exceeds_return: refund R1 exceeds the units left in return RMA-1 by 1
            refund_exceeds_line: refund R2 exceeds the units left on its line by 1
        "#]],
    );
    // The rest pays for units in no return, as that of any refund that exceeds its return.
    check(
        refunds(),
        &[waiting.clone()],
        &["A/L1/2"],
        expect![[r#"
            R1 covers A/L1/2 in no return
            refund_exceeds_return: refund R1 exceeds the units left in return RMA-1 by 1
            refund_exceeds_line: refund R2 exceeds the units left on its line by 1
        "#]],
    );
    waiting.decide(review.by_rule(minute(1))).unwrap();
    assert!(takes_refunds(&waiting));
    check(
        refunds(),
        &[waiting],
        &[],
        expect![[r#"
            R1 covers A/L1/1 in RMA-1
            refund_exceeds_line: refund R2 exceeds the units left on its line by 1
        "#]],
    );
}

#[test]
fn the_rest_of_a_refund_pays_for_canceled_then_for_unreturned_units() {
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
            refund_exceeds_line: refund R1 exceeds the units left on its line by 1
        "#]],
    );
}

#[test]
fn canceled_units_are_refunded_once() {
    let first = refund("R1", None, &[("L2", 1)]);
    let order = order_with(vec![first, refund("R2", None, &[("L2", 1)])]);
    let free = unreturned(&["A/L2/1"]);
    let earlier = quantities_of(&order, |refund| refund == "R1");
    // The result is the same when the newer snapshot leaves the first refund out.
    let newer = Order { refunds: order.refunds[1..].to_vec(), ..order.clone() };
    for order in [&order, &newer] {
        let second = match_refunds(order, &matched(&earlier), &[], &free);
        expect![[r#"
            R2 covers A/L2/1 in no return
        "#]]
        .assert_eq(&summary_of(&second));
    }
}

#[test]
fn refund_lines_for_the_same_order_line_are_summed() {
    // The first refund paid for a shipped and for the canceled unit, so the second refund can
    // cover only a shipped unit.
    let first = refund("R1", None, &[("L2", 1), ("L2", 1)]);
    let order = order_with(vec![first, refund("R2", None, &[("L2", 1)])]);
    let mut units = unreturned(&["A/L2/1", "A/L2/2"]);
    units[0].refunded_by = Some("R1".into());
    let earlier = quantities_of(&order, |refund| refund == "R1");
    let second = match_refunds(&order, &matched(&earlier), &[], &units);
    expect![[r#"
        R2 covers A/L2/2 in no return
    "#]]
    .assert_eq(&summary_of(&second));
    let exceeding = vec![refund("R1", None, &[("L1", 2), ("L1", 2)])];
    check(
        exceeding,
        &[],
        &["A/L1/1", "A/L1/2"],
        expect![[r#"
            R1 covers A/L1/1 in no return
            R1 covers A/L1/2 in no return
            refund_exceeds_line: refund R1 exceeds the units left on its line by 2
        "#]],
    );
}

#[test]
fn a_unit_refunded_before_it_ships_is_refunded_when_it_ships() {
    let refunds = vec![refund("R1", None, &[("L1", 2)]), refund("R2", None, &[("L1", 1)])];
    let order = order_with(refunds);
    let mut units = unreturned(&["A/L1/1"]);
    let early = match_refunds(&order, &MatchedRefunds::new(), &[], &units);
    mark_refunded(&mut units, &early.refunded_units);
    // Newer snapshots leave the refunds out.
    let newer = order_with(Vec::new());
    let mut ship = |paths: &[&str], matched_before: &[&str]| {
        units.extend(unreturned(paths));
        let earlier = quantities_of(&order, |refund| matched_before.contains(&refund));
        let refunded = match_unallocated_refunds(&newer, &matched(&earlier), &units);
        mark_refunded(&mut units, &refunded);
        summary_of(&RefundMatches { refunded_units: refunded, discrepancies: Vec::new() })
    };
    let all = ["R1", "R2"];
    assert_eq!(ship(&[], &all), "");
    assert_eq!(ship(&["A/L2/1", "A/L1/2"], &all), "R1 covers A/L1/2 in no return\n");
    assert_eq!(ship(&["A/L1/3"], &["R1"]), "", "R2 is not matched yet");
    assert_eq!(ship(&[], &all), "R2 covers A/L1/3 in no return\n");
    assert_eq!(ship(&["A/L1/4"], &all), "");
}

#[test]
fn unallocated_quantities_exclude_canceled_and_returned_units() {
    let order = order_with(vec![refund("R1", None, &[("L2", 2)])]);
    let returned = candidate_units(&[rma("RMA-1", &["A/L2/1"])], &["A/L2/2", "A/L2/3"]);
    let refunded =
        match_unallocated_refunds(&order, &matched(&quantities_of(&order, |_| true)), &returned);
    let units: Vec<_> = refunded.iter().map(|it| path(&it.unit)).collect();
    assert_eq!(units, ["A/L2/2"], "one of the two paid for the canceled unit");
}

#[test]
fn a_refund_that_does_not_fit_its_return_is_a_discrepancy() {
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
            refund_exceeds_return: refund R1 exceeds the units left in return RMA-1 by 1
            refund_exceeds_return: refund R1 exceeds the units left in return RMA-1 by 1
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
fn ignored_matched_and_empty_refunds_cover_nothing() {
    let ignored =
        Refund { tags: vec![IGNORE_REFUND.to_owned()], ..refund("R1", None, &[("L1", 1)]) };
    let amount_only = refund("R2", Some("RMA-1"), &[]);
    check(vec![ignored, amount_only], &older_and_newer(), &["A/L1/3"], expect![[""]]);
    let order = order_with(vec![refund("R1", None, &[("L1", 1)])]);
    let found = match_refunds(
        &order,
        &matched(&quantities_of(&order, |_| true)),
        &candidate_returns(&older_and_newer()),
        &[],
    );
    assert_eq!(found, RefundMatches::default());
}

#[test]
fn units_to_refund_come_before_units_to_exchange() {
    let units =
        [("A/L1/1", variant(1000)), ("A/L1/2", Resolution::Refund), ("A/L1/3", Resolution::Refund)];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(true));
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
    fn a_unit_is_refunded_once_however_refunds_arrive(
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
        let mut units = candidate_units(&returns, &["A/L1/3", "A/L2/2", "A/L2/3"]);
        let none = MatchedRefunds::new();
        let at_once = match_refunds(&order, &none, &candidate_returns(&returns), &units);

        // Two snapshots give the same result, whether the second repeats the first or not.
        let cut = cut.min(refunds.len());
        let is_early = |refund: &str| refunds[..cut].iter().any(|it| it.identifier == refund);
        let first = order_with(refunds[..cut].to_vec());
        let mut refunded = match_refunds(&first, &none, &candidate_returns(&returns), &units).refunded_units;
        for rma in &mut returns {
            rma.refund(&refunded, minute(9)).unwrap();
        }
        mark_refunded(&mut units, &refunded);
        let earlier = quantities_of(&order, is_early);
        let second = match_refunds(&order, &matched(&earlier), &candidate_returns(&returns), &units);
        let mut updated = candidate_returns(&older_and_newer());
        for it in &refunded {
            let rma = updated.iter_mut().find(|rma| Some(&rma.rma_identifier) == it.rma_identifier.as_ref());
            rma.into_iter().for_each(|rma| rma.mark_refunded(&it.unit));
        }
        prop_assert_eq!(&match_refunds(&order, &matched(&earlier), &updated, &units), &second);
        let newer = order_with(refunds[cut..].to_vec());
        prop_assert_eq!(&match_refunds(&newer, &matched(&earlier), &candidate_returns(&returns), &units), &second);
        refunded.extend(second.refunded_units);
        prop_assert_eq!(&refunded, &at_once.refunded_units);

        let mut ids: Vec<_> = refunded.iter().map(|it| &it.unit).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), count);
    }
}
