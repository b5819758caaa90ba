//! Decisions of a merchant without rules.

use chrono::TimeDelta;
use expect_test::expect;

use super::*;
use crate::order::OrderStatus;

fn decide(facts: UnitFacts<'_>, settings: &Settings, choice: &Choice<'_>, now: &str) -> String {
    refusal(&PolicyAt::new(settings, time(now)).unit(facts).decide(choice))
}

#[test]
fn every_reason_has_a_code_and_a_detail() {
    let settings = Settings::new("Acme");
    let decide = |change: &dyn Fn(&mut Order), facts_of: &dyn Fn(&Order) -> UnitFacts<'_>| {
        let mut order = order();
        change(&mut order);
        let choice = choice(ReturnMethod::ExpressReturns, Outcome::Exchange);
        decide(facts_of(&order), &settings, &choice, NOW) + "\n"
    };
    let same = |_: &mut Order| {};
    let table = [
        decide(&same, &|order| facts(order)),
        decide(&|order| order.status = OrderStatus::Cancelled, &|order| facts(order)),
        decide(&|order| order.status = OrderStatus::Created, &|order| facts(order)),
        decide(&same, &|order| UnitFacts { is_shipped: false, ..facts(order) }),
        decide(&same, &|order| UnitFacts { rma_identifier: Some("RMA-7"), ..facts(order) }),
        decide(&same, &|order| UnitFacts { is_refunded: true, ..facts(order) }),
        decide(&same, &|order| UnitFacts { is_order_exchanged: true, ..facts(order) }),
        decide(&|it| it.items[0].tags = vec!["Summer".into(), "FinalSale".into()], &|it| facts(it)),
        decide(&|it| it.items[0].shipped_date = Some(time("2026-01-01T00:00:00Z")), &|it| {
            facts(it)
        }),
        decide(&|order| order.items[0].shipped_date = None, &|order| facts(order)),
    ];
    expect![[r#"
        possible
        order_cancelled: the order was cancelled
        possible
        not_shipped: the unit has not shipped
        already_returned: the unit is already in return RMA-7
        already_refunded: the unit was already refunded
        already_exchanged: an exchange was already made against the order: choose a refund
        final_sale: items tagged FinalSale cannot be returned
        window_expired: the unit could be returned until 31 January 2026
        possible
    "#]]
    .assert_eq(&table.concat());
}

#[test]
fn tags_are_compared_without_case() {
    let settings = changed(&json!({ "final_sale_tags": ["Clearance", "Größe"] }));
    let forbidden = |tag: &str| {
        let mut order = order();
        order.items[0].tags = vec![tag.to_owned()];
        decide(facts(&order), &settings, &BY_MAIL, NOW) != "possible"
    };
    for tag in ["FinalSale", "finalsale", "gift-card", "GIFT-CARD", "Thirdparty", "thirdParty"] {
        assert!(forbidden(tag), "{tag}");
    }
    assert!(forbidden("clearance") && forbidden(" Clearance ") && forbidden("GRÖßE"));
    for tag in ["", "Final Sale", "gift", "Clearances", "bopis"] {
        assert!(!forbidden(tag), "{tag}");
    }
}

#[track_caller]
fn check_window(zone: &str, days: u16, shipped: &str, ends_at: &str) {
    let settings =
        Settings { time_zone: zone.to_owned(), return_window_days: days, ..Settings::new("Acme") };
    let mut order = order();
    order.items[0].shipped_date = Some(time(shipped));
    let decide = |now| PolicyAt::new(&settings, now).unit(facts(&order)).decide(&BY_MAIL);
    let end = decide(time(NOW)).window_ends_at;
    assert_eq!(end, time(ends_at));
    assert_eq!(decide(end - TimeDelta::microseconds(1)).refusal, None);
    assert_eq!(decide(end).refusal.unwrap().code, IneligibleCode::WindowExpired);
}

#[test]
fn the_window_ends_at_midnight_in_the_merchants_time_zone() {
    check_window("UTC", 30, "2026-02-01T10:00:00Z", "2026-03-04T00:00:00Z");
    check_window("UTC", 0, "2026-02-01T10:00:00Z", "2026-02-02T00:00:00Z");
    // The evening of 31 January in New York, and the clocks go forward on 8 March.
    check_window("America/New_York", 30, "2026-02-01T03:00:00Z", "2026-03-03T05:00:00Z");
    check_window("America/New_York", 45, "2026-02-01T03:00:00Z", "2026-03-18T04:00:00Z");
    check_window("Asia/Tokyo", 30, "2026-02-01T16:00:00Z", "2026-03-04T15:00:00Z");
    // Cairo skips the hour after midnight on 24 April 2026.
    check_window("Africa/Cairo", 9, "2026-04-14T12:00:00Z", "2026-04-23T22:00:00Z");
}

#[test]
fn a_window_ends_in_the_year_9999_at_the_latest() {
    for shipped in ["9999-12-31T23:59:59Z", "9999-12-20T00:00:00Z"] {
        check_window("UTC", 30, shipped, "9999-12-31T23:59:59Z");
        check_window("America/New_York", 30, shipped, "9999-12-31T23:59:59Z");
    }
    check_window("UTC", 30, "9999-11-30T00:00:00Z", "9999-12-31T00:00:00Z");
}

#[test]
fn staff_can_override_policy_but_not_facts() {
    let staff = StaffOverride { by: "kim".to_owned(), reason: "a good customer".to_owned() };
    let settings = Settings::new("Acme");
    let policy = PolicyAt::new(&settings, time(NOW));
    let check = |order: &Order, rma: Option<&str>, staff: Option<&StaffOverride>| {
        let facts = UnitFacts { rma_identifier: rma, ..facts(order) };
        let unit = UnitRequest { facts, reason: "OTHER", outcome: Outcome::Refund };
        let decision = decide_return(&policy, ReturnMethod::MailBack, &[unit], staff);
        let eligibility = decision.units[0].eligibility.clone();
        eligibility.map(|it| it.map(|it| it.code)).map_err(|it| it.code)
    };
    let staff = Some(&staff);
    assert_eq!(check(&order(), None, staff), Ok(None));
    let mut late = order();
    late.items[0].shipped_date = Some(time("2025-01-01T00:00:00Z"));
    assert_eq!(check(&late, None, None), Err(IneligibleCode::WindowExpired));
    assert_eq!(check(&late, None, staff), Ok(Some(IneligibleCode::WindowExpired)));
    late.items[0].tags = vec!["FinalSale".to_owned()];
    assert_eq!(check(&late, None, staff), Ok(Some(IneligibleCode::FinalSale)));
    assert_eq!(check(&late, Some("RMA-1"), staff), Err(IneligibleCode::AlreadyReturned));
}

#[test]
fn a_unit_above_the_weight_limit_cannot_use_express_returns() {
    let limited = Settings { express_max_weight: Some(2.5), ..Settings::new("Acme") };
    let decide = |weight, method, settings| {
        let mut order = order();
        order.items[0].weight = weight;
        decide(facts(&order), settings, &choice(method, Outcome::Refund), NOW)
    };
    let express = ReturnMethod::ExpressReturns;
    let unlimited = Settings::new("Acme");
    for (weight, method, settings) in [
        (Some(2.5), express, &limited),
        (None, express, &limited),
        (Some(2.6), express, &unlimited),
        (Some(2.6), ReturnMethod::MailBack, &limited),
    ] {
        assert_eq!(decide(weight, method, settings), "possible");
    }
    assert_eq!(
        decide(Some(2.6), express, &limited),
        "too_heavy_for_express: the unit is heavier than 2.5: choose another return method"
    );
}

#[test]
fn return_shipping_is_free_only_if_every_unit_is_exchanged() {
    use Outcome::{Exchange, GiftCard, Refund};
    use ReturnMethod::{ExpressReturns, MailBack};
    let cost = |is_free: bool, currency: &str, method, outcomes: &[Outcome]| {
        let mut settings = with_rules(&json!([]));
        settings.returns.free_exchange_shipping = is_free;
        settings.currency = currency.to_owned();
        let order = order();
        let unit = |outcome: &Outcome| UnitRequest {
            facts: facts(&order),
            reason: "OTHER",
            outcome: *outcome,
        };
        let units: Vec<_> = outcomes.iter().map(unit).collect();
        decide_return(&PolicyAt::new(&settings, time(NOW)), method, &units, None).cost.cents
    };
    assert_eq!(cost(true, "USD", MailBack, &[Refund]), 700);
    assert_eq!(cost(true, "USD", ExpressReturns, &[Refund, Exchange]), 300);
    assert_eq!(cost(true, "USD", MailBack, &[GiftCard, Exchange]), 0);
    assert_eq!(cost(false, "USD", MailBack, &[GiftCard, Exchange]), 700);
    assert_eq!(cost(true, "EUR", MailBack, &[Refund]), 0);
}

#[test]
fn nothing_can_be_kept_without_a_rule() {
    let settings = with_rules(&json!([]));
    let order = order();
    let unit = PolicyAt::new(&settings, time(NOW)).unit(facts(&order));
    let decision = unit.decide(&choice(ReturnMethod::CustomerKeep, Outcome::Refund));
    assert_eq!(refusal(&decision), "keep_not_allowed: no rule allows shoppers to keep this unit");
    let offers = unit.offers(true);
    let unavailable: Vec<_> = offers.unavailable_methods.iter().map(|it| it.method).collect();
    assert_eq!(unavailable, [ReturnMethod::CustomerKeep]);
    assert!(offers.ineligible.is_none() && offers.exchange_offered && offers.choices.is_empty());
}

#[test]
fn a_unit_is_ineligible_if_no_method_is_possible() {
    let mut settings = with_rules(&json!([]));
    settings.returns.methods.retain(|offer| offer.method == ReturnMethod::ExpressReturns);
    settings.express_max_weight = Some(1.0);
    let mut order = order();
    order.items[0].weight = Some(2.0);
    let offers =
        |order: &Order| PolicyAt::new(&settings, time(NOW)).unit(facts(order)).offers(true);
    assert_eq!(offers(&order).ineligible.unwrap().code, IneligibleCode::TooHeavyForExpress);
    order.items[0].tags = vec!["FinalSale".to_owned()];
    assert_eq!(offers(&order).ineligible.unwrap().code, IneligibleCode::TooHeavyForExpress);
}
