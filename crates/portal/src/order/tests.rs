use serde_json::{Value, json};

use super::*;

pub(crate) fn unit(line: &str, number: i32) -> Value {
    json!({
        "order_identifier": "A-1", "order_line_item_identifier": line, "unit": number,
        "sku": format!("SKU-{line}"), "title": format!("Shirt {line}"), "variant_identifier": "P-1",
        "unit_price_amount_cents": 5000, "returnable": true, "exchange_offered": true,
        "returnable_until": "2026-12-02T23:00:00Z", "refund_amount_cents": 4995,
    })
}

fn blocked(line: &str, number: i32, code: &str) -> Value {
    let mut unit = unit(line, number);
    unit["returnable"] = json!(false);
    unit["ineligible"] = json!({ "code": code, "detail": "in English" });
    unit
}

fn refused(code: &str) -> Refusal {
    Refusal { code: code.to_owned(), rule: None }
}

pub(crate) fn order(units: &[Value]) -> Order {
    order_of(json!({
        "order_identifier": "A-1", "currency": "EUR", "exchange_possible": true, "units": units,
    }))
}

pub(crate) fn order_of(page: Value) -> Order {
    group(serde_json::from_value(page).unwrap(), Vec::new())
}

#[test]
fn units_of_a_line_are_one_row() {
    let mut late = unit("2", 1);
    late["returnable_until"] = json!("2026-12-09T23:00:00Z");
    late["refund_amount_cents"] = json!(4994);
    let units = [
        late,
        unit("1", 1),
        unit("2", 2),
        blocked("2", 3, "already_returned"),
        blocked("1", 2, "final_sale"),
        blocked("2", 4, "already_returned"),
    ];
    let order = order(&units);
    let names: Vec<_> = order.lines.iter().map(|line| line.identifier.as_str()).collect();
    assert_eq!(names, ["2", "1"]);
    let line = order.lines.first().unwrap();
    let numbers: Vec<_> = line.free.iter().map(|unit| unit.number).collect();
    assert_eq!(numbers, [2, 1], "units with less time come first");
    assert_eq!(line.paid(), [4995, 4994]);
    assert_eq!(line.blocked.get(&refused("already_returned")).map(|(count, _)| *count), Some(2));
    assert!(line.exchange_offered && !order.is_truncated);
}

#[test]
fn a_unit_that_cannot_be_returned_shows_the_amount_that_was_paid() {
    let mut not_shipped = blocked("2", 1, "not_shipped");
    not_shipped.as_object_mut().unwrap().remove("refund_amount_cents");
    let order = order(&[blocked("1", 1, "final_sale"), not_shipped]);
    let paid: Vec<_> = order.lines.iter().map(Line::paid).collect();
    assert_eq!(paid, [vec![4995], vec![]]);
}

#[test]
fn a_giftee_sees_no_amounts() {
    let mut unit = unit("1", 1);
    let members = unit.as_object_mut().unwrap();
    members.retain(|name, _| !name.ends_with("_cents"));
    assert_eq!(order(&[unit]).lines.first().unwrap().paid(), Vec::<i64>::new());
}

#[test]
fn a_method_can_be_impossible_for_a_line() {
    let mut heavy = unit("1", 1);
    heavy["unavailable_methods"] =
        json!([{ "method": "express-returns", "code": "too_heavy_for_express", "detail": "" }]);
    let order = order(&[heavy]);
    let line = order.lines.first().unwrap();
    assert_eq!(line.refusal("express-returns"), Some(&refused("too_heavy_for_express")));
    assert_eq!(line.refusal("mail-back"), None);
}

#[test]
fn the_last_day_is_the_one_before_the_end() {
    let until = "2026-12-02T23:00:00Z".parse().unwrap();
    let unit = FreeUnit { number: 1, until, paid: None };
    assert_eq!(unit.last_day().to_rfc3339(), "2026-12-02T22:59:59+00:00");
}

#[test]
fn a_title_cannot_change_the_text_around_it() {
    let mut unit = unit("1", 1);
    unit["title"] = json!("Shirt\u{202e}\u{7}");
    let titles: Vec<_> = order(&[unit]).lines.into_iter().map(|line| line.title).collect();
    assert_eq!(titles, ["Shirt\u{fffd}\u{fffd}"]);
}
