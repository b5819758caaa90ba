use expect_test::{Expect, expect};

use super::super::Order;
use super::*;

/// Compares the errors or warnings of a changed plain order, with paths relative to the order.
#[track_caller]
pub(super) fn check_with(policy: OrderPolicy, change: impl FnOnce(&mut Value), expected: Expect) {
    let mut order = plain_order();
    change(&mut order);
    let errors = match read(&order_message(order), policy) {
        Ok(message) => {
            let warnings = message.warnings.iter();
            warnings.map(|warning| format!("warning: {warning}\n")).collect()
        }
        Err(invalid) => invalid.errors.iter().map(|error| format!("{error}\n")).collect::<String>(),
    };
    expected.assert_eq(&errors.replace("$.returns_portal_order.orders[0]", ""));
}

#[track_caller]
pub(super) fn check(change: impl FnOnce(&mut Value), expected: Expect) {
    check_with(OrderPolicy::default(), change, expected);
}

fn read_changed(change: impl FnOnce(&mut Value)) -> Order {
    let mut order = plain_order();
    change(&mut order);
    read(&order_message(order), OrderPolicy::default()).unwrap().snapshots.remove(0).order
}

#[test]
fn the_plain_order_is_accepted_without_warnings() {
    check(|_| {}, expect![""]);
}

#[test]
fn both_spellings_of_cancelled_are_one_status() {
    assert_eq!(
        read_changed(|order| order["status"] = json!("Canceled")).status,
        OrderStatus::Cancelled
    );
    assert_eq!(
        read_changed(|order| order["status"] = json!("Cancelled")).status,
        OrderStatus::Cancelled
    );
    assert_eq!(json!(OrderStatus::Cancelled), json!("Cancelled"));
    check(
        |order| order["status"] = json!("shipped"),
        expect![[r#"
            .status: invalid (must be one of Created, Shipped, Cancelled, Canceled)
        "#]],
    );
}

#[test]
fn transactions_and_discounts_are_not_read() {
    let changed = read_changed(|order| {
        order["transactions"] = json!(vec![json!({ "amounts": vec![1e15; 10] }); 1000]);
        order["discounts"] = json!([null, "x", [[]]]);
    });
    assert_eq!(changed, read_changed(|_| {}));
}

#[test]
fn the_shopper_can_be_under_the_alias() {
    let alias = |order: &mut Value| {
        let customer = order.as_object_mut().unwrap().remove("customer").unwrap();
        order["the service"] = customer;
    };
    assert_eq!(read_changed(alias).customer.identifier, "ada@mail.example");
    check(
        |order| order["the service"] = order["customer"].clone(),
        expect![[r#"
            ['the service']: invalid (says the same as customer: send one of the two)
        "#]],
    );
    check(
        |order| {
            alias(order);
            order["the service"]["email"] = json!(1);
        },
        expect![[r#"
            ['the service'].email: invalid_type (expected a string, found an integer)
        "#]],
    );
}

#[test]
fn an_order_cannot_have_a_name_that_urls_cannot_hold() {
    for dots in [".", ".."] {
        check(
            |order| order["identifier"] = json!(dots),
            expect![[r#"
                .identifier: invalid (must not be . or ..)
            "#]],
        );
    }
    assert_eq!(read_changed(|order| order["identifier"] = json!("...")).identifier, "...");
}

#[test]
fn a_shopper_needs_an_identifier_or_an_email() {
    let customer = json!({ "identifier": "c-7", "email": "" });
    assert_eq!(read_changed(|order| order["customer"] = customer).customer.identifier, "c-7");
    check(
        |order| order["customer"] = json!({ "identifier": "", "first_name": "Ada" }),
        expect![[r#"
            .customer.identifier: missing_field
        "#]],
    );
}

#[test]
fn a_line_needs_a_sku_or_a_upc() {
    let line = read_changed(|order| {
        order["items"][0]["sku"] = json!(null);
        order["items"][0]["upc"] = json!("012345678905");
    });
    assert_eq!(line.items[0].product_identifier, "012345678905");
    assert_eq!(read_changed(|_| {}).items[0].product_identifier, "SKU-L1");
    check(
        |order| order["items"][1]["sku"] = json!(""),
        expect![[r#"
            .items[1].sku: missing_field
        "#]],
    );
}

#[test]
fn the_quantity_covers_shipped_and_canceled_units() {
    check(
        |order| order["items"][0]["quantity_canceled"] = json!(1),
        expect![[r#"
            .items[0].quantity: invalid (must cover the shipped and the canceled units)
        "#]],
    );
    check(
        |order| order["items"][0]["quantity"] = json!(1001),
        expect![[r#"
            .items[0].quantity: invalid (must be between 1 and 1000)
        "#]],
    );
}

#[test]
fn an_order_has_at_most_ten_thousand_units() {
    let lines = |quantities: &[i64]| {
        let quantities = quantities.to_vec();
        move |order: &mut Value| {
            let first = order["items"][0].clone();
            let line = |(number, quantity): (usize, i64)| {
                let mut line = first.clone();
                line["identifier"] = json!(format!("L{number}"));
                (line["quantity"], line["quantity_shipped"]) = (json!(quantity), json!(0));
                (line["product_amount_cents"], line["tax_amount_cents"]) = (json!(0), json!(0));
                line
            };
            order["items"] = quantities.into_iter().enumerate().map(line).collect();
            (order["product_amount_cents"], order["tax_amount_cents"]) = (json!(0), json!(0));
            order["refunds"] = json!([]);
        }
    };
    check(lines(&[1000; 10]), expect![""]);
    check(
        lines(&[&[1000; 10][..], &[1]].concat()),
        expect![[r#"
            .items: invalid (must have at most 10000 units over all lines)
        "#]],
    );
}

#[test]
fn line_identifiers_are_unique_in_the_order() {
    check(
        |order| order["items"][1]["identifier"] = json!("L1"),
        expect![[r#"
            .items[1].identifier: invalid (another line of this order has the same identifier)
        "#]],
    );
}

#[test]
fn an_update_is_at_most_a_day_in_the_future() {
    check(|order| order["updated_at"] = json!("2026-03-02T00:00:00Z"), expect![""]);
    check(
        |order| order["updated_at"] = json!("2026-03-02T00:00:01Z"),
        expect![[r#"
            .updated_at: invalid (must be at most 24 hours in the future)
        "#]],
    );
}

#[test]
fn the_largest_amounts_do_not_overflow() {
    let max = 1_000_000_000_000_000i64;
    let line = plain_order()["items"][0].clone();
    let lines = (0..1000).map(|number| {
        let mut line = line.clone();
        line["identifier"] = json!(format!("L{number}"));
        let units = if number == 0 { 1000 } else { 9 };
        (line["quantity"], line["quantity_shipped"]) = (json!(units), json!(units));
        line["unit_price_amount_cents"] = json!(max);
        line["product_amount_cents"] = json!(max);
        line
    });
    let order = read_changed(|order| order["items"] = lines.collect());
    assert_eq!(order.items.len(), 1000);
}

#[test]
fn a_refund_needs_existing_lines_and_units() {
    check(
        |order| order["refunds"][0]["refund_line_items"][0]["order_item_identifier"] = json!("L9"),
        expect![[r#"
            .refunds[0].refund_line_items[0].order_item_identifier: invalid (names no line of this order)
        "#]],
    );
    check(
        |order| order["refunds"][0]["refund_line_items"][0]["quantity"] = json!(4),
        expect![[r#"
            .refunds[0].refund_line_items[0].quantity: invalid (refunds more than the 3 units of the line)
        "#]],
    );
}

#[test]
fn refunds_cannot_exceed_the_units_of_a_line() {
    check(
        |order| {
            let mut second = order["refunds"][0].clone();
            second["identifier"] = json!("R2");
            second["refund_line_items"][0]["identifier"] = json!("R2-1");
            order["refunds"].as_array_mut().unwrap().push(second);
        },
        expect![[r#"
            .refunds[1].refund_line_items[0].quantity: invalid (refunds more than the 3 units of the line)
        "#]],
    );
}

#[test]
fn an_ignored_refund_uses_no_units() {
    let whole_line_twice = |quantity: i64, tags: Value| {
        move |order: &mut Value| {
            let mut ignored = order["refunds"][0].clone();
            (ignored["identifier"], ignored["tags"]) = (json!("R0"), tags);
            ignored["refund_line_items"][0]["identifier"] = json!("R0-1");
            ignored["refund_line_items"][0]["quantity"] = json!(quantity);
            order["refunds"][0]["refund_line_items"][0]["quantity"] = json!(3);
            order["refunds"].as_array_mut().unwrap().insert(0, ignored);
        }
    };
    check(whole_line_twice(3, json!(["ignore_refund"])), expect![""]);
    check(
        whole_line_twice(3, json!(["other"])),
        expect![[r#"
            .refunds[1].refund_line_items[0].quantity: invalid (refunds more than the 3 units of the line)
        "#]],
    );
    check(
        whole_line_twice(4, json!(["ignore_refund"])),
        expect![[r#"
            .refunds[0].refund_line_items[0].quantity: invalid (refunds more than the 3 units of the line)
        "#]],
    );
    check(
        whole_line_twice(3, json!(["ignore_refund", 7])),
        expect![[r#"
            .refunds[0].tags[1]: invalid_type (expected a string, found an integer)
        "#]],
    );
}

#[test]
fn refunds_and_their_lines_have_unique_identifiers() {
    check(
        |order| {
            let mut second = order["refunds"][0].clone();
            second["refund_line_items"][0]["quantity"] = json!(1);
            order["refunds"].as_array_mut().unwrap().push(second);
        },
        expect![[r#"
            .refunds[1].refund_line_items[0].identifier: invalid (another refund line of this order has the same identifier)
            .refunds[1].identifier: invalid (another refund of this order has the same identifier)
        "#]],
    );
}

#[test]
fn an_invalid_line_causes_no_error_in_its_refund() {
    check(
        |order| order["items"][0]["identifier"] = json!(7),
        expect![[r#"
            .items[0].identifier: invalid_type (expected a string, found an integer)
        "#]],
    );
    check(
        |order| order["items"][0]["identifier"] = json!("L1\0"),
        expect![[r#"
            .items[0].identifier: invalid (must not hold a NUL character)
        "#]],
    );
    check(
        |order| order["items"] = json!([]),
        expect![[r#"
            .items: invalid (must have 1 to 1000 elements)
        "#]],
    );
    check(
        |order| order["items"][0] = json!("L1"),
        expect![[r#"
            .items[0]: invalid_type (expected an object, found a string)
        "#]],
    );
}

#[test]
fn optional_fields_can_be_null() {
    let order = read_changed(|order| {
        for key in ["raw_status", "tags", "concept", "note", "the service"] {
            order[key] = json!(null);
        }
        order["items"][0]["shipped_date"] = json!(null);
        order["refunds"][0]["tags"] = json!(null);
    });
    assert_eq!((order.tags.len(), order.note), (0, None));
}

#[test]
fn a_tagged_refund_is_ignored() {
    let order = read_changed(|order| order["refunds"][0]["tags"] = json!(["ignore_refund"]));
    assert!(order.refunds[0].is_ignored());
    assert!(!read_changed(|_| {}).refunds[0].is_ignored());
}

#[track_caller]
fn check_message(message: Value, expected: &str) {
    let invalid = read(&message, OrderPolicy::default()).unwrap_err();
    let errors: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.join("\n"), expected);
}

#[test]
fn the_envelope_is_validated() {
    check_message(json!({}), "$.returns_portal_order: missing_field");
    check_message(json!([]), "$: invalid_type (expected an object, found an array)");
    check_message(
        json!({ "returns_portal_order": {} }),
        "$.returns_portal_order.orders: missing_field",
    );
    check_message(
        json!({ "returns_portal_order": { "orders": [] } }),
        "$.returns_portal_order.orders: invalid (must have 1 to 500 elements)",
    );
    check_message(
        json!({ "returns_portal_order": { "orders": vec![plain_order(); 501] } }),
        "$.returns_portal_order.orders: invalid (must have 1 to 500 elements)",
    );
}
