//! Tests of policies.

use expect_test::expect;

use super::*;

#[test]
fn responses_about_returns_are_added_up() {
    let page = |number: i64| {
        json!({
            "returns": 2, "changed": 1, "next": number,
            "current": { "refused": 0, "reviewed": 0, "return_shipping_cost_cents": { "USD": 700 } },
            "draft": { "refused": 1, "reviewed": 1, "return_shipping_cost_cents": { "EUR": number } },
            "changes": [{ "rma_identifier": format!("RMA-{number}"),
                "current": { "return_shipping_cost_cents": 700 },
                "draft": { "return_shipping_cost_cents": 0,
                    "ineligible": { "code": "not_returnable", "detail": "the unit cannot be returned", "rule": "no" } } }],
        })
    };
    let mut sum = Value::Null;
    add(&mut sum, &page(1));
    add(&mut sum, &page(2));
    expect![[r#"
        4 returns of the last 90 days, of which the draft decides 2 differently:
          refused: 2 with the draft, 0 with the saved rules
          sent to review: 2 with the draft, 0 with the saved rules
          return shipping in EUR cents: 3 with the draft, 0 with the saved rules
          return shipping in USD cents: 0 with the draft, 1400 with the saved rules

        RMA    SAVED RULES         DRAFT
        RMA-1  shipping 700 cents  the unit cannot be returned (rule no)
        RMA-2  shipping 700 cents  the unit cannot be returned (rule no)
    "#]]
    .assert_eq(&describe_history(&sum));
}

#[test]
fn decisions_name_the_warehouse() {
    let to = |warehouse: &str, rule: &str| json!({ "warehouse": warehouse, "rule": rule });
    let decided = json!({ "return_shipping_cost_cents": 700, "review_rule": "look", "return_to": to("reno", "all") });
    assert_eq!(decision(&decided), "shipping 700 cents; review (rule look); to reno (rule all)");
    let refused = json!({ "code": "window_expired" });
    let unit = |options: Value| {
        json!({ "order_line_item_identifier": "1", "unit": 1, "returnable_until": "2026-12-01T00:00:00Z",
                "choices": [{ "options": options }] })
    };
    let both = unit(json!([{ "return_to": to("west", "b") }, { "return_to": to("reno", "a") },
                           { "return_to": to("reno", "a") }, { "return_to": to("gone", "c"), "ineligible": refused }]));
    expect![[r#"
        LINE  UNIT  SAVED RULES                 DRAFT
        1     1     until 2026-12-01T00:00:00Z  until 2026-12-01T00:00:00Z, to ren…
    "#]]
    .assert_eq(&describe_order(
        &json!({ "current": { "units": [unit(json!([{}]))] }, "draft": { "units": [both] } }),
    ));
}
