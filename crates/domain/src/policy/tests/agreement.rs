//! The list of returnable units, quotes and new returns agree, for random rules and orders.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

/// A random rule. Few values, so that rules match often.
fn rule() -> impl Strategy<Value = Value> {
    let some = |values: Value| {
        let values = values.as_array().unwrap().clone();
        let most = values.len();
        prop::option::weighted(0.2, subsequence(values, 1..=most).prop_map(|it| json!(it)))
    };
    let maybe = |value: Vec<Value>| prop::option::weighted(0.15, select(value));
    let methods = json!(["mail-back", "express-returns", "customer-keep"]);
    let outcomes = json!(["refund", "exchange", "gift_card"]);
    let when = (
        some(json!(["sale", "bulky"])),
        some(json!(["OTHER", "DAMAGED", "TOO_SMALL"])),
        some(methods.clone()),
        some(outcomes.clone()),
        maybe(vec![json!({ "min": 10 }), json!({ "max": 20 })]),
        maybe(vec![json!({ "min_cents": 2000 }), json!({ "max_cents": 5000 })]),
    );
    let return_to = maybe(vec![json!("reno"), json!("west")]);
    let then = (
        prop::option::weighted(0.3, any::<bool>()),
        maybe(vec![json!({ "days": 15 }), json!({ "until": "2026-02-25" })]),
        maybe(vec![
            json!([{ "shipping_cost_cents": 0 }]),
            json!([{ "method": "mail-back", "shipping_cost_cents": 900 }]),
        ]),
        some(methods),
        some(outcomes),
        maybe(vec![json!({ "up_to_cents": 1000 }), json!({ "up_to_cents": 5000 })]),
        return_to,
    );
    (when, then).prop_map(|(when, then)| {
        let (line_tags, reasons, methods, outcomes, days, price) = when;
        let (returnable, window, costs, offered, results, keep, return_to) = then;
        let mut rule = json!({
            "when": { "line_tags": line_tags, "reasons": reasons, "methods": methods, "outcomes": outcomes,
                      "days_since_shipping": days, "unit_price": price },
            "then": { "returnable": returnable, "window": window, "costs": costs, "methods": offered,
                      "outcomes": results, "keep": keep, "return_to": return_to },
        });
        if rule["then"].as_object().unwrap().values().all(Value::is_null) {
            rule["then"] = json!({ "returnable": true });
        }
        rule
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    prop::collection::vec(rule(), 0..6).prop_map(|mut rules| {
        for (index, rule) in rules.iter_mut().enumerate() {
            rule["id"] = json!(format!("r{index}"));
        }
        with_rules(&json!(rules))
    })
}

fn orders() -> impl Strategy<Value = Order> {
    let tags = subsequence(vec!["sale", "bulky", "FinalSale"], 0..=3);
    (tags, 0..40_i64, select(vec![1_000, 3_000, 6_000])).prop_map(|(tags, days, price)| {
        let mut order = order();
        let line = &mut order.items[0];
        line.tags = tags.into_iter().map(str::to_owned).collect();
        line.shipped_date = Some(time(NOW) - chrono::TimeDelta::days(days));
        line.unit_price_amount_cents = price;
        order
    })
}

proptest! {
    #[test]
    fn a_list_offers_what_a_quote_allows(
        settings in settings(), order in orders(), exchanged in any::<bool>(), variants in any::<bool>(),
        order_kept_cents in select(vec![0, 500, 3_000]),
    ) {
        let policy = PolicyAt::new(&settings, time(NOW));
        let line = &order.items[0];
        let facts = UnitFacts {
            paid_amount_cents: line.unit_price_amount_cents, is_order_exchanged: exchanged, order_kept_cents,
            ..facts(&order)
        };
        let offers = policy.unit(facts).offers(variants);
        let mut is_any_possible = false;
        for reason in settings.returns.reasons.iter() {
            let code = reason.code.as_str();
            let named = offers.choices.iter().find(|it| it.reasons.iter().any(|it| it == code));
            let others = offers.choices.iter().find(|it| it.reasons.is_empty());
            for outcome in Outcome::ALL {
                let is_offered = match outcome {
                    Outcome::Refund => true,
                    Outcome::Exchange => variants && !exchanged && reason.offers_exchange,
                    Outcome::GiftCard => !exchanged,
                };
                for method in ReturnMethod::ALL {
                    if !is_offered {
                        continue;
                    }
                    let unit = UnitRequest { facts, reason: code, outcome };
                    let quote = decide_return(&policy, *method, &[unit], None);
                    let refusal = quote.units[0].eligibility.clone().err();
                    is_any_possible |= refusal.is_none();
                    if settings.policy.rules.is_empty() {
                        continue;
                    }
                    let mut options = named.or(others).unwrap().options.iter();
                    let option = options.find(|it| it.method == *method && it.outcome == outcome);
                    let option = option.unwrap();
                    prop_assert_eq!(&option.ineligible, &refusal);
                    prop_assert_eq!(option.return_shipping_cost_cents, quote.cost.cents);
                    prop_assert_eq!(option.cost_rule.as_deref(), quote.cost.rule.map(|it| it.id.as_str()));
                    let return_to = quote.units[0].decision.return_to.map(ReturnTo::from);
                    prop_assert_eq!(&option.return_to, &return_to);
                }
            }
        }
        prop_assert_eq!(offers.ineligible.is_none(), is_any_possible);
    }
}
