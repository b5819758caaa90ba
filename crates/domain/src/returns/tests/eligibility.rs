use expect_test::expect;

use super::*;
use crate::order;

fn facts() -> UnitFacts<'static> {
    UnitFacts {
        order_status: order::OrderStatus::Shipped,
        order_created_at: time("2026-01-30T10:00:00Z"),
        is_shipped: true,
        shipped_at: Some(time("2026-02-01T10:00:00Z")),
        line_tags: &[],
        rma_identifier: None,
        is_refunded: false,
        is_second_exchange: false,
        return_method: Some(ReturnMethod::ExpressReturns),
        weight: None,
    }
}

const NOW: &str = "2026-02-20T10:00:00Z";

fn eligibility(unit: &UnitFacts<'_>, settings: &Settings, now: &str) -> String {
    match check_eligibility(unit, settings, time(now), None) {
        Ok(_) => "yes".to_owned(),
        Err(Ineligible { code, detail }) => {
            let staff = if code.is_overridable() { "staff may override" } else { "final" };
            format!("{code} ({staff}): {detail}")
        }
    }
}

#[test]
fn every_reason_has_a_code_and_a_detail() {
    let final_sale = ["Summer".to_owned(), "FinalSale".to_owned()];
    let cases = [
        facts(),
        UnitFacts { order_status: order::OrderStatus::Cancelled, ..facts() },
        UnitFacts { order_status: order::OrderStatus::Created, ..facts() },
        UnitFacts { is_shipped: false, ..facts() },
        UnitFacts { rma_identifier: Some("RMA-7"), ..facts() },
        UnitFacts { is_refunded: true, ..facts() },
        UnitFacts { is_second_exchange: true, ..facts() },
        UnitFacts { line_tags: &final_sale, ..facts() },
        UnitFacts { shipped_at: Some(time("2026-01-01T00:00:00Z")), ..facts() },
        UnitFacts { shipped_at: None, ..facts() },
    ];
    let settings = Settings::new("Acme");
    let table: String =
        cases.iter().map(|case| format!("{}\n", eligibility(case, &settings, NOW))).collect();
    expect![[r#"
        yes
        order_cancelled (final): the order was cancelled
        yes
        not_shipped (final): the unit has not shipped
        already_returned (final): the unit is already in return RMA-7
        already_refunded (final): the unit was already refunded
        already_exchanged (final): an exchange was already made against the order: choose a refund
        final_sale (staff may override): items tagged FinalSale cannot be returned
        window_expired (staff may override): the unit could be returned until 31 January 2026
        yes
    "#]]
    .assert_eq(&table);
}

#[test]
fn tags_are_compared_without_case() {
    let settings =
        Settings { final_sale_tags: vec!["Clearance".to_owned()], ..Settings::new("Acme") };
    let forbidden = |tag: &str| {
        let tags = [tag.to_owned()];
        let unit = UnitFacts { line_tags: &tags, ..facts() };
        check_eligibility(&unit, &settings, time(NOW), None).is_err()
    };
    for tag in ["FinalSale", "finalsale", "gift-card", "GIFT-CARD", "Thirdparty", "thirdParty"] {
        assert!(forbidden(tag), "{tag}");
    }
    assert!(forbidden("clearance") && forbidden(" Clearance "));
    for tag in ["", "Final Sale", "gift", "Clearances", "bopis"] {
        assert!(!forbidden(tag), "{tag}");
    }
}

#[track_caller]
fn check_window(zone: &str, days: u16, shipped: &str, ends_at: &str) {
    let settings =
        Settings { time_zone: zone.to_owned(), return_window_days: days, ..Settings::new("Acme") };
    let unit = UnitFacts { shipped_at: Some(time(shipped)), ..facts() };
    let end = window_ends_at(&unit, &settings);
    assert_eq!(end, time(ends_at));
    let just_before = end - TimeDelta::microseconds(1);
    assert_eq!(check_eligibility(&unit, &settings, just_before, None), Ok(None));
    let ineligible = check_eligibility(&unit, &settings, end, None).unwrap_err();
    assert_eq!(ineligible.code, IneligibleCode::WindowExpired);
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
    let tags = ["FinalSale".to_owned()];
    let check = |unit: UnitFacts<'_>, staff: Option<&StaffOverride>| {
        check_eligibility(&unit, &settings, time(NOW), staff).map_err(|ineligible| ineligible.code)
    };
    let late = UnitFacts { shipped_at: Some(time("2025-01-01T00:00:00Z")), ..facts() };
    assert_eq!(check(facts(), Some(&staff)), Ok(None));
    assert_eq!(check(late, None), Err(IneligibleCode::WindowExpired));
    assert_eq!(check(late, Some(&staff)), Ok(Some(IneligibleCode::WindowExpired)));
    let both = UnitFacts { line_tags: &tags, ..late };
    assert_eq!(check(both, Some(&staff)), Ok(Some(IneligibleCode::FinalSale)));
    let returned = UnitFacts { rma_identifier: Some("RMA-1"), ..both };
    assert_eq!(check(returned, Some(&staff)), Err(IneligibleCode::AlreadyReturned));
}

#[test]
fn a_unit_above_the_weight_limit_cannot_use_express_returns() {
    let limited = Settings { express_max_weight: Some(2.5), ..Settings::new("Acme") };
    let unit = |weight| UnitFacts { weight, ..facts() };
    let cases = [
        (unit(Some(2.5)), &limited),
        (unit(None), &limited),
        (unit(Some(2.6)), &Settings::new("Acme")),
        (UnitFacts { return_method: Some(ReturnMethod::MailBack), ..unit(Some(2.6)) }, &limited),
        (UnitFacts { return_method: None, ..unit(Some(2.6)) }, &limited),
        (unit(Some(2.6)), &limited),
    ];
    let table: String = cases
        .iter()
        .map(|(unit, settings)| format!("{}\n", eligibility(unit, settings, NOW)))
        .collect();
    expect![[r#"
        yes
        yes
        yes
        yes
        yes
        too_heavy_for_express (final): the unit is heavier than 2.5: choose another return method
    "#]]
    .assert_eq(&table);
    let code =
        check_method(&unit(Some(2.6)), ReturnMethod::ExpressReturns, &limited).unwrap_err().code;
    assert_eq!(code, IneligibleCode::TooHeavyForExpress);
    assert_eq!(check_method(&unit(Some(2.6)), ReturnMethod::MailBack, &limited), Ok(()));
}
