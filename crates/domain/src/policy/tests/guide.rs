//! The examples of the guide do what it says.

use super::*;
use crate::merchant::ReviewDecision;

const GUIDE: &str = include_str!("../../../../../docs/write-a-returns-policy.md");

/// A merchant with every method and the policy of an example, counted from 0.
fn example(index: usize) -> Settings {
    let blocks = GUIDE.split("```json\n").skip(1).filter_map(|block| block.split("```").next());
    let policy: Value = serde_json::from_str(blocks.collect::<Vec<_>>()[index]).unwrap();
    changed(&json!({
        "appearance": { "withdrawal": true },
        "returns": { "methods": [
            { "method": "mail-back", "shipping_cost_cents": 700 },
            { "method": "express-returns" }, { "method": "customer-keep" },
        ] },
        "policy": policy,
    }))
}

fn decide<'a>(
    settings: &'a Settings,
    facts: UnitFacts<'a>,
    choice: &Choice<'_>,
) -> UnitDecision<'a> {
    let decision = PolicyAt::new(settings, time(NOW)).unit(facts).decide(choice);
    assert_eq!(settings.policy.warnings("USD"), []);
    decision
}

#[test]
fn orders_before_the_holidays_can_be_returned_until_the_end_of_january() {
    let settings = example(0);
    let mut order = order();
    order.created_at = time("2026-11-20T10:00:00Z");
    let mut end = |shipped: &str| {
        order.items[0].shipped_date = Some(time(shipped));
        decide(&settings, facts(&order), &BY_MAIL).window_ends_at
    };
    assert_eq!(end("2026-11-21T10:00:00Z"), time("2027-02-01T00:00:00Z"));
    assert_eq!(end("2027-01-04T10:00:00Z"), time("2027-02-04T00:00:00Z"));
}

#[test]
fn bulky_goods_come_back_in_a_store() {
    let settings = example(1);
    let mut order = order();
    order.items[0].tags = vec!["bulky".to_owned()];
    let by = |method| decide(&settings, facts(&order), &choice(method, Outcome::Refund));
    assert_eq!(by(ReturnMethod::ExpressReturns).refusal, None);
    let refusal = by(ReturnMethod::MailBack).refusal.unwrap();
    assert_eq!(refusal.rule.as_deref(), Some("in-store-only"));
    let rule = settings.policy.rule("in-store-only").unwrap();
    assert_eq!(rule.text.len(), 2);
}

#[test]
fn faulty_goods_come_back_free() {
    let settings = example(2);
    let mut order = order();
    order.currency = iso_currency::Currency::EUR;
    order.items[0].delivered_date = Some(time("2026-02-10T10:00:00Z"));
    let faulty = decide(&settings, facts(&order), &Choice { reason: Some("DAMAGED"), ..BY_MAIL });
    assert_eq!((faulty.cost.cents, faulty.cost.rule.unwrap().id.as_str()), (0, "faulty-goods"));
    assert_eq!(faulty.window_ends_at, time("2026-04-12T00:00:00Z"));
    assert_eq!(decide(&settings, facts(&order), &BY_MAIL).cost.rule, None);
}

#[test]
fn small_items_are_kept_by_shoppers_who_return_little() {
    let settings = example(3);
    let order = order();
    let rule = |cents: i64, returns: usize| {
        let returned_at = Some(vec![time("2026-02-01T00:00:00Z"); returns]);
        let shopper = ShopperFacts { email: None, returned_at };
        let facts = UnitFacts { shopper: &shopper, ..facts(&order) };
        let choice = Choice {
            return_paid_cents: cents,
            ..choice(ReturnMethod::CustomerKeep, Outcome::Refund)
        };
        decide(&settings, facts, &choice).refusal.and_then(|it| it.rule)
    };
    assert_eq!(rule(1_500, 2), None);
    assert_eq!(rule(1_501, 2).as_deref(), Some("keep-small-items"));
    assert_eq!(rule(100, 3).as_deref(), Some("no-keeping-for-frequent-returners"));
}

/// The decision about an order of a shopper with this many earlier returns.
fn of_shopper<T>(
    settings: &Settings,
    (email, returns): (&str, usize),
    choice: &Choice<'_>,
    read: impl Fn(UnitDecision<'_>) -> T,
) -> T {
    let mut order = order();
    order.customer.email = Some(email.to_owned());
    let mut shopper = ShopperFacts::new(&settings.policy, &order);
    shopper.returned_at = Some(vec![time("2026-02-01T00:00:00Z"); returns]);
    let facts = UnitFacts { shopper: &shopper, ..facts(&order) };
    read(decide(settings, facts, choice))
}

#[test]
fn frequent_returners_pay_for_their_returns() {
    let settings = example(4);
    let rule = |email: &str, returns: usize| {
        of_shopper(&settings, (email, returns), &BY_MAIL, |decision| {
            let ReturnCost { cents, rule } = decision.cost;
            (cents, rule.map(|rule| rule.id.clone()))
        })
    };
    assert_eq!(rule("eve@shop.example", 5), (900, Some("frequent-returners".to_owned())));
    assert_eq!(rule("eve@shop.example", 4), (700, None));
    assert_eq!(rule("Ada@Shop.example", 5), (0, Some("trusted".to_owned())));
}

#[test]
fn returns_of_frequent_returners_wait_for_review() {
    let settings = example(5);
    let review = |email: &str, returns: usize, choice: &Choice<'_>| {
        of_shopper(&settings, (email, returns), choice, |decision| {
            decision.review.map(|(terms, rule)| (terms.within_days, terms.then, rule.id.clone()))
        })
    };
    let reviewed = (3, ReviewDecision::Approve, "frequent-returners".to_owned());
    assert_eq!(review("eve@shop.example", 5, &BY_MAIL), Some(reviewed));
    assert_eq!(review("eve@shop.example", 4, &BY_MAIL), None);
    assert_eq!(review("Ada@Shop.example", 5, &BY_MAIL), None);
    let withdrawn = Choice { reason: Some(WITHDRAWAL), ..BY_MAIL };
    assert_eq!(review("eve@shop.example", 5, &withdrawn), None);
}

#[test]
fn units_go_to_the_warehouse_of_their_rule() {
    let settings = example(6);
    let mut outlet = order();
    outlet.items[0].tags = vec!["outlet".to_owned()];
    let warehouse = |order: &Order, reason| {
        let choice = Choice { reason: Some(reason), ..BY_MAIL };
        decide(&settings, facts(order), &choice)
            .return_to
            .map(|(warehouse, _)| warehouse.to_owned())
    };
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(warehouse(&outlet, "OTHER"), named("outlet"));
    assert_eq!(warehouse(&outlet, "DAMAGED"), named("repair"));
    assert_eq!(warehouse(&outlet, WITHDRAWAL), named("main"));
    outlet.shipping_address.country_code = "CA".to_owned();
    assert_eq!(warehouse(&outlet, "OTHER"), named("toronto"));
    let mut plain = order();
    plain.shipping_address.country_code = "US".to_owned();
    assert_eq!(warehouse(&plain, "OTHER"), None);
}

#[test]
fn a_withdrawal_is_possible_for_a_final_sale() {
    let settings = example(7);
    let mut order = order();
    order.items[0].tags = vec!["FinalSale".to_owned()];
    let withdrawn = Choice { reason: Some(WITHDRAWAL), ..BY_MAIL };
    order.items[0].delivered_date = Some(time("2026-02-06T10:00:00Z"));
    assert_eq!(decide(&settings, facts(&order), &withdrawn).refusal, None);
    order.items[0].delivered_date = Some(time("2026-02-05T10:00:00Z"));
    assert!(decide(&settings, facts(&order), &withdrawn).refusal.is_some());
}
