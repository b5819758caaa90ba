//! Decisions are cheap for large orders and long policies.

use std::fs;
use std::time::Duration;

use super::*;
use crate::merchant::normalized_tag;

/// The processor time of this thread.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = stat.split_whitespace().next().unwrap().parse().unwrap();
    Duration::from_nanos(nanoseconds)
}

/// An order of 10 lines with 250 long tags each.
fn large_order() -> Order {
    let mut order = order();
    let line = order.items[0].clone();
    let tags = |line: usize| (0..250).map(move |tag| format!("{}{line}-{tag}", "Ä".repeat(240)));
    order.items =
        (0..10).map(|number| OrderLine { tags: tags(number).collect(), ..line.clone() }).collect();
    order
}

/// 30 rules that name 100 tags each.
fn long_policy() -> Settings {
    let tags = |rule: usize| (0..100).map(move |tag| format!("Ö{rule}-{tag}")).collect::<Vec<_>>();
    let rules: Vec<_> = (0..30)
        .map(|rule| {
            json!({ "id": format!("r{rule}"), "when": { "line_tags": tags(rule) },
                    "then": { "returnable": false } })
        })
        .collect();
    with_rules(&json!(rules))
}

/// A comparison of each tag with each tag takes hundreds of seconds in a debug build.
const GENEROUS: Duration = Duration::from_secs(20);

#[test]
fn the_choices_for_ten_thousand_units_take_little_time() {
    let order = large_order();
    let settings = long_policy();
    let started_at = processor_time();
    let mut policies = LinePolicies::new(PolicyAt::new(&settings, time(NOW)));
    for number in 0..10_000 {
        let line = &order.items[number % 10];
        let offers = policies.offers(UnitFacts { line, ..facts(&order) }, true);
        assert_eq!(offers.ineligible, None);
    }
    assert_eq!(policies.checked_lines(), 10);
    let taken = processor_time() - started_at;
    assert!(taken < GENEROUS, "{taken:?}");
}

#[test]
fn a_return_of_many_units_takes_little_time() {
    let order = large_order();
    let settings = long_policy();
    let unit = |number: usize| UnitRequest {
        facts: UnitFacts { line: &order.items[number % 10], ..facts(&order) },
        reason: "OTHER",
        outcome: Outcome::Refund,
    };
    let units: Vec<_> = (0..10_000).map(unit).collect();
    let started_at = processor_time();
    let policy = PolicyAt::new(&settings, time(NOW));
    let decided = decide_return(&policy, ReturnMethod::MailBack, &units, None);
    assert!(decided.units.iter().all(|unit| unit.eligibility.is_ok()));
    let taken = processor_time() - started_at;
    assert!(taken < GENEROUS, "{taken:?}");
}

#[test]
fn units_of_a_line_have_their_own_offers() {
    let order = order();
    let settings = with_rules(&json!([]));
    let mut policies = LinePolicies::new(PolicyAt::new(&settings, time(NOW)));
    let code = |offers: Offers| offers.ineligible.map(|it| it.code);
    let plain = facts(&order);
    let returned = UnitFacts { rma_identifier: Some("RMA-7"), ..plain };
    let refunded = UnitFacts { is_refunded: true, ..plain };
    let unshipped = UnitFacts { is_shipped: false, ..plain };
    let codes = [plain, plain, returned, refunded, unshipped, plain]
        .map(|facts| code(policies.offers(facts, false)));
    let expected = [
        None,
        None,
        Some(IneligibleCode::AlreadyReturned),
        Some(IneligibleCode::AlreadyRefunded),
        Some(IneligibleCode::NotShipped),
        None,
    ];
    assert_eq!(codes, expected);
}

#[test]
fn orders_and_shoppers_have_their_own_rules() {
    let settings = with_rules(&json!([
        { "id": "vip", "when": { "order_tags": ["vip"] }, "then": { "returnable": false } },
        { "id": "often", "when": { "returns_of_shopper": { "days": 30, "min": 1 } },
          "then": { "returnable": false } },
    ]));
    let plain = order();
    let mut vip = order();
    vip.tags = vec![" VIP".to_owned()];
    let often = ShopperFacts { email: None, returned_at: Some(vec![time("2026-02-19T10:00:00Z")]) };
    let mut policies = LinePolicies::new(PolicyAt::new(&settings, time(NOW)));
    let units = [facts(&plain), facts(&vip), UnitFacts { shopper: &often, ..facts(&plain) }];
    let rules = [units, units].concat().into_iter().map(|facts| {
        let refusal = policies.unit(facts).decide(&BY_MAIL).refusal;
        refusal.and_then(|it| it.rule)
    });
    let rules: Vec<_> = rules.collect();
    let expected = [None, Some("vip"), Some("often")].map(|it| it.map(str::to_owned));
    assert_eq!(rules, [expected.clone(), expected].concat());
}

#[test]
fn tags_are_compared_in_lower_case_without_surrounding_spaces() {
    // The results of `strip` and `lower` in Python.
    for (tag, expected) in [
        (" FinalSale\t", "finalsale"),
        ("GRÖẞE", "größe"),
        ("İstanbul", "i\u{307}stanbul"),
        ("ΟΔΟΣ", "οδος"),
        ("ΣΑΣ!", "σας!"),
        ("\u{a0}Ⅷ Ǆ\u{3000}", "ⅷ ǆ"),
    ] {
        assert_eq!(normalized_tag(tag), expected);
    }
}
