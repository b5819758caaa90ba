//! Rules name the warehouses to which units go.

use expect_test::expect;

use super::*;
use crate::returns::ReturnDestination;

/// Damaged units go to reno, units with the tag `outlet` to west, and others where the merchant usually receives units.
fn rules() -> Value {
    json!([
        { "id": "damaged", "when": { "reasons": ["DAMAGED"] }, "then": { "return_to": "reno" } },
        { "id": "outlet", "when": { "line_tags": ["outlet"] }, "then": { "return_to": "west" } },
        { "id": "late", "when": { "reasons": ["DAMAGED"], "line_tags": ["outlet"] }, "then": { "return_to": "west" } },
    ])
}

fn with_tag(tag: &str) -> Order {
    let mut order = order();
    order.items[0].tags = vec![tag.to_owned()];
    order
}

/// The decision about units with these reasons in one line: the warehouse of the return, then the reason against each unit.
fn decide(units: &[(&Order, &str)], method: ReturnMethod, staff: Option<&StaffOverride>) -> String {
    let settings = with_rules(&rules());
    let policy = PolicyAt::new(&settings, time(NOW));
    let request =
        |(order, reason)| UnitRequest { facts: facts(order), reason, outcome: Outcome::Refund };
    let requests: Vec<_> = units.iter().copied().map(request).collect();
    let decided = decide_return(&policy, method, &requests, staff);
    let to = decided
        .return_to
        .map_or("none".to_owned(), |(warehouse, rule)| format!("{warehouse} by {}", rule.id));
    let by = |it: &Ineligible| format!("{} by {}", it.code, it.rule.as_deref().unwrap_or("none"));
    let unit = |unit: &DecidedUnit<'_>| match &unit.eligibility {
        Ok(None) => "possible".to_owned(),
        Ok(Some(overridden)) => format!("overridden {}", by(overridden)),
        Err(refusal) => by(refusal),
    };
    let units: Vec<_> = decided.units.iter().map(unit).collect();
    format!("{to}: {}", units.join(", "))
}

#[test]
fn the_first_rule_that_names_a_warehouse_decides() {
    let [plain, outlet] = [order(), with_tag("outlet")];
    let mail = |units: &[(&Order, &str)]| decide(units, ReturnMethod::MailBack, None);
    assert_eq!(mail(&[(&outlet, "DAMAGED")]), "reno by damaged: possible");
    assert_eq!(
        mail(&[(&outlet, "OTHER"), (&outlet, "OTHER")]),
        "west by outlet: possible, possible"
    );
    assert_eq!(mail(&[(&plain, "OTHER")]), "none: possible");
    let express = decide(&[(&plain, "DAMAGED")], ReturnMethod::ExpressReturns, None);
    assert_eq!(express, "reno by damaged: possible");
}

#[test]
fn units_that_go_to_different_places_need_a_return_each() {
    let [plain, outlet, sale] = [order(), with_tag("outlet"), with_tag("FinalSale")];
    let mail = |units: &[(&Order, &str)]| decide(units, ReturnMethod::MailBack, None);
    let table = [
        mail(&[(&plain, "DAMAGED"), (&outlet, "OTHER"), (&outlet, "DAMAGED")]),
        mail(&[(&outlet, "OTHER"), (&plain, "OTHER")]),
        mail(&[(&plain, "OTHER"), (&outlet, "OTHER")]),
        // A unit that cannot be returned goes nowhere.
        mail(&[(&sale, "DAMAGED"), (&outlet, "OTHER")]),
    ];
    expect![[r#"
        reno by damaged: possible, other_warehouse by outlet, possible
        west by outlet: possible, other_warehouse by outlet
        none: possible, other_warehouse by outlet
        west by outlet: final_sale by none, possible"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn withdrawals_and_returns_of_staff_go_where_the_first_unit_goes() {
    let [plain, outlet] = [order(), with_tag("outlet")];
    let withdrawn = [(&outlet, WITHDRAWAL), (&plain, WITHDRAWAL)];
    let mail = ReturnMethod::MailBack;
    assert_eq!(decide(&withdrawn, mail, None), "west by outlet: possible, possible");
    let staff = StaffOverride { by: "Ann".to_owned(), reason: "one parcel".to_owned() };
    let overridden = decide(&[(&plain, "DAMAGED"), (&outlet, "OTHER")], mail, Some(&staff));
    assert_eq!(overridden, "reno by damaged: possible, overridden other_warehouse by outlet");
}

#[test]
fn units_that_the_shopper_keeps_go_nowhere() {
    let mut rules = rules();
    let keep = json!({ "id": "small", "then": { "keep": { "up_to_cents": 9_000 } } });
    rules.as_array_mut().unwrap().push(keep);
    let settings = with_rules(&rules);
    let outlet = with_tag("outlet");
    let keep = choice(ReturnMethod::CustomerKeep, Outcome::Refund);
    let decision = PolicyAt::new(&settings, time(NOW)).unit(facts(&outlet)).decide(&keep);
    assert_eq!((decision.refusal, decision.return_to), (None, None));
}

#[test]
fn a_destination_has_the_address_of_the_warehouse() {
    let settings = with_rules(&rules());
    let rule = settings.policy.rule_to("west").unwrap();
    let lines = |warehouse: &str, known: &Warehouses| {
        let destination = ReturnDestination::new((warehouse, rule), known)?;
        assert_eq!(
            (destination.warehouse.as_str(), destination.rule.as_str()),
            (warehouse, "outlet")
        );
        Some(destination.address_lines)
    };
    let mut known = warehouses();
    let expected = ["Dock 7", "7 Dock Street", "west, NV 89501"].map(str::to_owned);
    assert_eq!(lines("west", &known), Some(expected.to_vec()));
    let address = known.get_mut("west").unwrap().address.as_mut().unwrap();
    address.company = Some(String::new());
    address.street2 = Some("Gate 2".to_owned());
    assert_eq!(lines("west", &known).unwrap()[1..3], ["7 Dock Street", "Gate 2"]);
    assert_eq!(lines("south", &known), None);
    known.get_mut("west").unwrap().address = None;
    assert_eq!(lines("west", &known), None);
}
