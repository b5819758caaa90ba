//! Decisions by rules.

use expect_test::expect;

use super::*;
use crate::merchant::{ReviewDecision, ReviewTerms};

/// The decision about a unit whose order, facts and choice are changed.
fn decide(rules: &Value, change: impl Fn(&mut Order), choice: &Choice<'_>) -> String {
    let settings = with_rules(rules);
    let mut order = order();
    change(&mut order);
    refusal(&PolicyAt::new(&settings, time(NOW)).unit(facts(&order)).decide(choice))
}

fn unchanged(_: &mut Order) {}

/// Whether a rule with one condition matches an order.
fn matches(when: Value, change: impl Fn(&mut Order)) -> bool {
    let rule = json!([{ "id": "no", "when": when, "then": { "returnable": false } }]);
    decide(&rule, change, &BY_MAIL) != "possible"
}

#[test]
fn each_condition_holds_for_its_values() {
    let tag = |text: &str| {
        let text = text.to_owned();
        move |it: &mut Order| it.items[0].tags = vec![text.clone()]
    };
    assert!(matches(json!({}), unchanged));
    assert!(matches(json!({ "line_tags": ["a", "Sale"] }), tag(" sale ")));
    assert!(!matches(json!({ "line_tags": ["sale"] }), |it| it.tags = vec!["sale".into()]));
    assert!(matches(json!({ "order_tags": ["vip"] }), |it| it.tags = vec!["VIP".into()]));
    assert!(matches(json!({ "skus": ["TENT-*", "SHIRT-*"] }), unchanged));
    assert!(!matches(json!({ "skus": ["SHIRT-*-RED"] }), unchanged));
    let price = |cents: i64| move |it: &mut Order| it.items[0].unit_price_amount_cents = cents;
    assert!(matches(json!({ "unit_price": { "min_cents": 100, "max_cents": 100 } }), price(100)));
    assert!(!matches(json!({ "unit_price": { "max_cents": 99 } }), price(100)));
    assert!(!matches(json!({ "unit_price": { "min_cents": 1, "currency": "EUR" } }), price(100)));
    let weight = |weight| move |it: &mut Order| it.items[0].weight = weight;
    assert!(matches(json!({ "weight": { "min": 2.5 } }), weight(Some(2.5))));
    assert!(!matches(json!({ "weight": { "min": 0 } }), weight(None)));
    let country = |it: &mut Order| it.shipping_address.country_code = "DE".to_owned();
    assert!(matches(json!({ "countries": ["AT", "DE"] }), country));
    assert!(!matches(json!({ "countries": ["AT"] }), country));
    assert!(matches(
        json!({ "ordered": { "from": "2026-01-30", "until": "2026-01-30" } }),
        unchanged
    ));
    assert!(!matches(json!({ "ordered": { "until": "2026-01-29" } }), unchanged));
    assert!(matches(json!({ "days_since_order": { "min": 21, "max": 21 } }), unchanged));
    assert!(matches(json!({ "days_since_shipping": { "min": 19, "max": 19 } }), unchanged));
    assert!(!matches(json!({ "days_since_delivery": { "min": 0 } }), unchanged));
    let delivered =
        |it: &mut Order| it.items[0].delivered_date = Some(time("2026-02-10T23:00:00Z"));
    assert!(matches(json!({ "days_since_delivery": { "min": 10, "max": 10 } }), delivered));
    assert!(matches(json!({ "reasons": ["OTHER"] }), unchanged));
    assert!(!matches(json!({ "reasons": ["DAMAGED"] }), unchanged));
    assert!(matches(json!({ "methods": ["mail-back"] }), unchanged));
    assert!(!matches(json!({ "outcomes": ["exchange", "gift_card"] }), unchanged));
    let concept = |it: &mut Order| it.concept = Some("Outlet".to_owned());
    assert!(matches(json!({ "concepts": ["Outlet"] }), concept));
    assert!(!matches(json!({ "line_tags": ["sale"], "skus": ["*"] }), unchanged));
}

#[test]
fn a_pattern_has_parts_in_their_order() {
    use crate::merchant::matches_pattern;
    for (pattern, text) in
        [("*", ""), ("A*", "A"), ("*B", "AB"), ("A*B*C", "A-B--C"), ("A**C", "AC"), ("", "")]
    {
        assert!(matches_pattern(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [("", "A"), ("A", "AB"), ("AB*BA", "ABA"), ("*A*B*", "BA"), ("A*", "BA")]
    {
        assert!(!matches_pattern(pattern, text), "{pattern} {text}");
    }
}

#[test]
fn rules_count_and_list_shoppers() {
    let list = EmailDigest::of("Ada@shop.example ");
    let mut settings = with_rules(&json!([]));
    settings.policy = serde_json::from_value(json!({
        "rules": [
            { "id": "often", "when": { "returns_of_shopper": { "days": 90, "min": 2 } },
              "then": { "returnable": false } },
            { "id": "blocked", "when": { "shoppers": ["blocked"] }, "then": { "returnable": false } },
        ],
        "shoppers": { "blocked": [list.as_str()] },
    }))
    .unwrap();
    let rule = |email: &str, returned_at: Option<&[&str]>| {
        let mut order = order();
        order.customer.email = Some(email.to_owned());
        let mut shopper = ShopperFacts::new(&settings.policy, &order);
        shopper.returned_at = returned_at.map(|it| it.iter().map(|at| time(at)).collect());
        let facts = UnitFacts { shopper: &shopper, ..facts(&order) };
        let decision = PolicyAt::new(&settings, time(NOW)).unit(facts).decide(&BY_MAIL);
        decision.refusal.and_then(|it| it.rule)
    };
    let old = "2025-11-21T10:00:00Z";
    let new = ["2026-02-01T00:00:00Z", "2026-02-20T09:59:59Z"];
    assert_eq!(rule("eve@shop.example", Some(&new)).as_deref(), Some("often"));
    assert_eq!(rule("eve@shop.example", Some(&[old, new[0]])), None);
    assert_eq!(rule("eve@shop.example", None), None);
    assert_eq!(rule("ada@SHOP.example", Some(&[])).as_deref(), Some("blocked"));
}

#[test]
fn the_first_rule_that_names_an_effect_decides_it() {
    let rules = json!([
        { "id": "vip", "when": { "order_tags": ["vip"] }, "then": { "returnable": true, "window": { "days": 100 } } },
        { "id": "sale", "when": { "line_tags": ["sale"] }, "then": { "returnable": false } },
        { "id": "short", "then": { "window": { "days": 5, "from": "order" } } },
        { "id": "long", "then": { "window": { "days": 500 } } },
    ]);
    let table = [
        decide(&rules, |it| it.items[0].tags = vec!["FinalSale".into()], &BY_MAIL),
        decide(&rules, |it| it.items[0].tags = vec!["sale".into()], &BY_MAIL),
        decide(&rules, unchanged, &BY_MAIL),
        decide(
            &rules,
            |it| {
                it.tags = vec!["vip".into()];
                it.items[0].tags = vec!["FinalSale".into(), "sale".into()];
            },
            &BY_MAIL,
        ),
    ];
    expect![[r#"
        final_sale: items tagged FinalSale cannot be returned
        not_returnable by sale: the unit cannot be returned
        window_expired by short: the unit could be returned until 4 February 2026
        possible"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn a_window_ends_at_the_later_of_its_ends() {
    let end = |window: Value, delivered: Option<&str>| {
        let settings = with_rules(&json!([{ "id": "w", "then": { "window": window } }]));
        let mut order = order();
        order.items[0].delivered_date = delivered.map(time);
        let policy = PolicyAt::new(&settings, time(NOW));
        let ends_at = policy.unit(facts(&order)).decide(&BY_MAIL).window_ends_at;
        ends_at.format("%F").to_string()
    };
    assert_eq!(end(json!({ "days": 10 }), None), "2026-02-12");
    assert_eq!(end(json!({ "days": 10, "from": "order" }), None), "2026-02-10");
    assert_eq!(end(json!({ "days": 10, "from": "delivery" }), None), "2026-02-12");
    assert_eq!(end(json!({ "days": 10, "from": "delivery" }), Some(NOW)), "2026-03-03");
    assert_eq!(end(json!({ "until": "2026-02-01" }), None), "2026-02-02");
    assert_eq!(end(json!({ "days": 10, "until": "2026-02-01" }), None), "2026-02-12");
    assert_eq!(end(json!({ "days": 10, "until": "2026-05-01" }), None), "2026-05-02");
}

#[test]
fn rules_restrict_methods_and_outcomes() {
    use Outcome::{Exchange, GiftCard, Refund};
    use ReturnMethod::{ExpressReturns, MailBack};
    let rules = json!([
        { "id": "store", "when": { "line_tags": ["bulky"] }, "then": { "methods": ["express-returns"] } },
        { "id": "credit", "when": { "methods": ["express-returns"] }, "then": { "outcomes": ["gift_card"] } },
    ]);
    let bulky = |it: &mut Order| it.items[0].tags = vec!["bulky".into()];
    let table = [
        decide(&rules, bulky, &choice(MailBack, Refund)),
        decide(&rules, bulky, &choice(ExpressReturns, Exchange)),
        decide(&rules, bulky, &choice(ExpressReturns, GiftCard)),
        decide(&rules, unchanged, &choice(MailBack, Refund)),
    ];
    expect![[r#"
        method_not_offered by store: the return method mail-back is not offered for this unit
        outcome_not_offered by credit: an exchange is not offered for this unit
        possible
        possible"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn shoppers_can_keep_units_up_to_the_sum_of_the_return() {
    let keep = |up_to: Value, cents: i64| {
        let rules = json!([{ "id": "small", "then": { "keep": up_to } }]);
        let choice = Choice {
            return_paid_cents: cents,
            ..choice(ReturnMethod::CustomerKeep, Outcome::Refund)
        };
        decide(&rules, unchanged, &choice)
    };
    assert_eq!(keep(json!({ "up_to_cents": 1500 }), 1_500), "possible");
    let too_much = "keep_not_allowed by small: \
                    the units that the shopper would keep of the order cost too much together";
    assert_eq!(keep(json!({ "up_to_cents": 1500 }), 1_501), too_much);
    let foreign = "keep_not_allowed by small: units of an order in this currency cannot be kept";
    assert_eq!(keep(json!({ "up_to_cents": 1500, "currency": "EUR" }), 1), foreign);
}

#[test]
fn units_that_the_shopper_keeps_already_count_once_for_each_order() {
    let settings =
        with_rules(&json!([{ "id": "small", "then": { "keep": { "up_to_cents": 3_000 } } }]));
    let policy = PolicyAt::new(&settings, time(NOW));
    let [first, mut second] = [order(), order()];
    second.identifier = "other".to_owned();
    let is_possible = |units: &[(&Order, i64)]| {
        let requests: Vec<_> = units
            .iter()
            .map(|(order, order_kept_cents)| UnitRequest {
                facts: UnitFacts { order_kept_cents: *order_kept_cents, ..facts(order) },
                reason: "OTHER",
                outcome: Outcome::Refund,
            })
            .collect();
        let decided = decide_return(&policy, ReturnMethod::CustomerKeep, &requests, None);
        decided.units.iter().all(|unit| unit.eligibility.is_ok())
    };
    // Each unit cost 1000.
    assert!(is_possible(&[(&first, 1_000), (&first, 1_000)]));
    assert!(!is_possible(&[(&first, 1_001), (&first, 1_001)]));
    assert!(is_possible(&[(&first, 500), (&second, 500)]));
    assert!(!is_possible(&[(&first, 500), (&second, 501)]));
    let facts = UnitFacts { order_kept_cents: 2_001, ..facts(&first) };
    let offers = policy.unit(facts).offers(false);
    let mut options = offers.choices[0].options.iter();
    let keep = options.find(|it| it.method == ReturnMethod::CustomerKeep).unwrap();
    assert_eq!((keep.keep_up_to_cents, keep.ineligible.is_some()), (Some(999), true));
}

#[test]
fn a_return_has_the_highest_cost_of_its_units() {
    let settings = with_rules(&json!([
        { "id": "faulty", "when": { "reasons": ["DAMAGED"] }, "then": { "costs": [{ "shipping_cost_cents": 0 }] } },
        { "id": "bulky", "when": { "line_tags": ["bulky"] },
          "then": { "costs": [{ "method": "mail-back", "shipping_cost_cents": 900 },
                              { "currency": "EUR", "shipping_cost_cents": 1 }] } },
    ]));
    let plain = order();
    let mut bulky = order();
    bulky.items[0].tags = vec!["bulky".to_owned()];
    let cost = |method, units: &[(&Order, &str, Outcome)]| {
        let unit = |(order, reason, outcome)| UnitRequest { facts: facts(order), reason, outcome };
        let units: Vec<_> = units.iter().copied().map(unit).collect();
        let cost = decide_return(&PolicyAt::new(&settings, time(NOW)), method, &units, None).cost;
        (cost.cents, cost.rule.map(|rule| rule.id.clone()))
    };
    let by = |rule: &str| Some(rule.to_owned());
    let faulty = (&plain, "DAMAGED", Outcome::Refund);
    let other = (&plain, "OTHER", Outcome::Refund);
    let large = (&bulky, "OTHER", Outcome::Exchange);
    use ReturnMethod::{ExpressReturns, MailBack};
    assert_eq!(cost(MailBack, &[faulty]), (0, by("faulty")));
    assert_eq!(cost(MailBack, &[faulty, other]), (700, None));
    assert_eq!(cost(MailBack, &[other, large]), (900, by("bulky")));
    assert_eq!(cost(ExpressReturns, &[large]), (0, None));
    // A rule comes before the free shipping of exchanges.
    assert_eq!(cost(MailBack, &[large]), (900, by("bulky")));
}

#[test]
fn the_other_effects_are_those_of_the_first_rule() {
    let settings = with_rules(&json!([
        { "id": "vip", "when": { "order_tags": ["vip"] },
          "then": { "exchange_bonus_percent": 7, "review": { "required": false } } },
        { "id": "all", "then": { "gift_card_bonus_percent": 10, "exchange_bonus_percent": 5,
            "review": { "within_days": 3, "then": "decline" } } },
    ]));
    let plain = order();
    let mut vip = order();
    vip.tags = vec!["VIP".to_owned()];
    let policy = PolicyAt::new(&settings, time(NOW));
    let decide = |order: &Order, outcome| {
        let unit = policy.unit(facts(order));
        let decision = unit.decide(&choice(ReturnMethod::MailBack, outcome));
        let review = decision.review.map(|(terms, rule)| (terms, rule.id.clone()));
        (decision.bonus.map(|(percent, rule)| (percent, rule.id.clone())), review)
    };
    let by = |percent, rule: &str| Some((percent, rule.to_owned()));
    let terms = ReviewTerms { within_days: 3, then: ReviewDecision::Decline };
    let reviewed = Some((terms, "all".to_owned()));
    assert_eq!(decide(&plain, Outcome::Refund), (None, reviewed.clone()));
    assert_eq!(decide(&plain, Outcome::GiftCard), (by(10, "all"), reviewed.clone()));
    assert_eq!(decide(&plain, Outcome::Exchange), (by(5, "all"), reviewed));
    assert_eq!(decide(&vip, Outcome::Exchange), (by(7, "vip"), None));
    assert_eq!(decide(&vip, Outcome::GiftCard), (by(10, "all"), None));
}

#[test]
fn a_return_has_the_review_of_the_first_rule_that_asks_for_one() {
    let settings = with_rules(&json!([
        { "id": "damaged", "when": { "reasons": ["DAMAGED"] }, "then": { "review": { "within_days": 2, "then": "approve" } } },
        { "id": "too-small", "when": { "reasons": ["TOO_SMALL"] }, "then": { "review": { "required": false } } },
        { "id": "others", "then": { "review": { "within_days": 5, "then": "decline" } } },
    ]));
    let order = order();
    let policy = PolicyAt::new(&settings, time(NOW));
    let review = |reasons: &[&str]| {
        let request =
            |reason| UnitRequest { facts: facts(&order), reason, outcome: Outcome::Refund };
        let units: Vec<_> = reasons.iter().copied().map(request).collect();
        let decided = decide_return(&policy, ReturnMethod::MailBack, &units, None);
        decided.review.map(|(terms, rule)| (terms.within_days, rule.id.clone()))
    };
    assert_eq!(review(&["TOO_SMALL", "TOO_SMALL"]), None);
    assert_eq!(review(&["TOO_SMALL", "OTHER"]), Some((5, "others".to_owned())));
    assert_eq!(review(&["OTHER", "DAMAGED"]), Some((2, "damaged".to_owned())));
}

#[test]
fn reasons_with_the_same_options_share_an_entry() {
    let mut settings = with_rules(&json!([
        { "id": "faulty", "when": { "reasons": ["DAMAGED", "WRONG_ITEM"] },
          "then": { "costs": [{ "shipping_cost_cents": 0 }], "keep": { "up_to_cents": 1000 } } },
        { "id": "withdrawn", "when": { "reasons": [WITHDRAWAL] }, "then": { "outcomes": ["refund"] } },
    ]));
    settings.appearance.withdrawal = true;
    let order = order();
    let offers = PolicyAt::new(&settings, time(NOW)).unit(facts(&order)).offers(false);
    let show = |option: &ChoiceOption| {
        let refusal = option.ineligible.as_ref().map_or("", |it| it.code.into());
        format!(
            "{}/{} {} {refusal}",
            option.outcome, option.method, option.return_shipping_cost_cents
        )
    };
    let entry = |entry: &ReasonChoices| {
        let options: Vec<_> = entry.options.iter().map(show).collect();
        format!("{}: {}\n", entry.reasons.join(" "), options.join(", "))
    };
    let table: String = offers.choices.iter().map(entry).collect();
    expect![[r#"
        : refund/mail-back 700 , refund/express-returns 300 , refund/customer-keep 0 keep_not_allowed, gift_card/mail-back 0 , gift_card/express-returns 0 , gift_card/customer-keep 0 keep_not_allowed
        WRONG_ITEM DAMAGED: refund/mail-back 0 , refund/express-returns 0 , refund/customer-keep 0 , gift_card/mail-back 0 , gift_card/express-returns 0 , gift_card/customer-keep 0 
        withdrawal: refund/mail-back 700 , refund/express-returns 300 , refund/customer-keep 0 keep_not_allowed, gift_card/mail-back 0 outcome_not_offered, gift_card/express-returns 0 outcome_not_offered, gift_card/customer-keep 0 outcome_not_offered
    "#]]
    .assert_eq(&table);
    assert!(offers.unavailable_methods.is_empty() && !offers.exchange_offered);
}
