//! Amounts that do not add up.

use expect_test::expect;

use super::rules::{check, check_with};
use super::*;

const STRICT: OrderPolicy = OrderPolicy { strict_amounts: true, strict_refund_dates: false };

#[test]
fn sums_that_do_not_add_up_are_warnings_unless_the_merchant_is_strict() {
    let change = |order: &mut Value| {
        order["items"][1]["unit_price_amount_cents"] = json!(999);
        order["tax_amount_cents"] = json!(21);
    };
    check(
        change,
        expect![[r#"
            warning: .items[1].product_amount_cents: invalid (says 1000, but the parts make 999)
            warning: .tax_amount_cents: invalid (says 21, but the parts make 20)
        "#]],
    );
    check_with(
        STRICT,
        change,
        expect![[r#"
            .items[1].product_amount_cents: invalid (says 1000, but the parts make 999)
            .tax_amount_cents: invalid (says 21, but the parts make 20)
        "#]],
    );
}

#[test]
fn an_order_discount_that_no_line_carries_is_a_warning_for_every_merchant() {
    let change = |order: &mut Value| {
        order["discount_amount_cents"] = json!(500);
        order["items"][0]["discount_amount_cents"] = json!(200);
        order["refunds"] = json!([]);
    };
    for policy in [OrderPolicy::default(), STRICT] {
        check_with(
            policy,
            change,
            expect![[r#"
                warning: .discount_amount_cents: invalid (300 of the discount is on no line, and is spread over the lines)
            "#]],
        );
    }
    check(|order| order["items"][1]["discount_amount_cents"] = json!(200), expect![""]);
}

#[test]
fn a_wrong_total_is_a_warning_for_every_merchant() {
    for policy in [OrderPolicy::default(), STRICT] {
        check_with(
            policy,
            |order| order["total_amount_cents"] = json!(9999),
            expect![[r#"
                warning: .total_amount_cents: invalid (says 9999, but product and tax make 4020)
            "#]],
        );
    }
}

#[test]
fn a_total_is_not_checked_when_its_parts_are_not_certain() {
    let changes: [fn(&mut Value); 5] = [
        |order| order["shipping_amount_cents"] = json!(1),
        |order| order["shipping_tax_amount_cents"] = json!(1),
        |order| order["items"][1]["discount_amount_cents"] = json!(1),
        |order| {
            order["discount_amount_cents"] = json!(1);
            order["items"][1]["discount_amount_cents"] = json!(1);
        },
        // One unit is not shipped.
        |order| order["items"][0]["quantity"] = json!(4),
    ];
    for change in changes {
        check(
            |order| {
                order["total_amount_cents"] = json!(9999);
                change(order);
            },
            expect![""],
        );
    }
    check(
        |order| {
            order["total_amount_cents"] = json!(9999);
            order["tax_amount_cents"] = json!(21);
        },
        expect![[r#"
            warning: .tax_amount_cents: invalid (says 21, but the parts make 20)
        "#]],
    );
}

/// Sets the refunds of the order: the amount, and the units of L1.
fn refunds(refunds: &'static [(i64, i64)]) -> impl Fn(&mut Value) {
    move |order| {
        let refund = |(index, (amount, units)): (usize, &(i64, i64))| {
            let line = json!({
                "identifier": format!("R{index}-1"), "quantity": units, "order_item_identifier": "L1",
            });
            json!({
                "identifier": format!("R{index}"), "total_refund_amount_cents": amount,
                "created_at": "2026-01-02T09:00:00Z",
                "refund_line_items": if *units > 0 { json!([line]) } else { json!([]) },
            })
        };
        order["refunds"] = refunds.iter().enumerate().map(refund).collect();
    }
}

#[test]
fn a_refund_above_the_amount_paid_is_a_warning_unless_the_merchant_is_strict() {
    // A third of 3010, rounded up.
    check(refunds(&[(1004, 1)]), expect![""]);
    check(
        refunds(&[(1005, 1)]),
        expect![[r#"
            warning: .refunds[0].total_refund_amount_cents: invalid (refunds 1005, but 1004 was paid for the units and shipping)
        "#]],
    );
    check_with(
        STRICT,
        refunds(&[(1005, 1)]),
        expect![[r#"
            .refunds[0].total_refund_amount_cents: invalid (refunds 1005, but 1004 was paid for the units and shipping)
        "#]],
    );
    // A refund can include the shipping.
    check(
        |order| {
            refunds(&[(1104, 1)])(order);
            order["shipping_amount_cents"] = json!(90);
            order["shipping_tax_amount_cents"] = json!(10);
        },
        expect![""],
    );
    // The amounts of a line are those of its shipped units.
    check(
        |order| {
            refunds(&[(2000, 1)])(order);
            for key in ["quantity_shipped", "product_amount_cents", "tax_amount_cents"] {
                order["items"][0][key] = json!(0);
            }
            (order["product_amount_cents"], order["tax_amount_cents"]) = (json!(1000), json!(10));
        },
        expect![""],
    );
}

#[test]
fn refunds_above_the_amount_paid_for_a_line_or_the_order_are_warnings() {
    check(
        |order| {
            refunds(&[(1104, 1), (1104, 1)])(order);
            order["shipping_amount_cents"] = json!(100);
        },
        expect![[r#"
            warning: .refunds[1].total_refund_amount_cents: invalid (the refunds of line L1 make 2208, but 2107 was paid for its units and shipping)
        "#]],
    );
    check(refunds(&[(3010, 3), (1010, 0)]), expect![""]);
    check(
        refunds(&[(3010, 3), (1011, 0)]),
        expect![[r#"
            warning: .refunds[1].total_refund_amount_cents: invalid (the refunds of the order make 4021, but its total is 4020)
        "#]],
    );
    check(
        |order| {
            refunds(&[(9000, 3)])(order);
            order["refunds"][0]["tags"] = json!(["ignore_refund"]);
        },
        expect![""],
    );
}

#[test]
fn refunds_of_a_line_are_not_rounded_up_one_by_one() {
    // The three units of L1 cost 1004, 1003 and 1003.
    check(refunds(&[(1004, 1), (1003, 1), (1003, 1)]), expect![""]);
    check_with(
        STRICT,
        refunds(&[(1004, 1), (1004, 1)]),
        expect![[r#"
            .refunds[1].total_refund_amount_cents: invalid (the refunds of line L1 make 2008, but 2007 was paid for its units and shipping)
        "#]],
    );
    // A line of 533 with two units, beside another line.
    check(
        |order| {
            refunds(&[(267, 1), (267, 1)])(order);
            let amounts = [("quantity", 2), ("quantity_shipped", 2), ("product_amount_cents", 533)];
            for (key, value) in amounts.into_iter().chain([("tax_amount_cents", 0)]) {
                order["items"][0][key] = json!(value);
            }
            order["items"][0]["unit_price_amount_cents"] = json!(266);
            (order["product_amount_cents"], order["tax_amount_cents"]) = (json!(1533), json!(10));
            order["total_amount_cents"] = json!(1543);
        },
        expect![[r#"
            warning: .items[0].product_amount_cents: invalid (says 533, but the parts make 532)
            warning: .refunds[1].total_refund_amount_cents: invalid (the refunds of line L1 make 534, but 533 was paid for its units and shipping)
        "#]],
    );
}

#[test]
fn the_excess_of_a_line_is_reported_once() {
    check(
        refunds(&[(1005, 1), (1005, 1), (1005, 1)]),
        expect![[r#"
            warning: .refunds[0].total_refund_amount_cents: invalid (refunds 1005, but 1004 was paid for the units and shipping)
        "#]],
    );
    check(
        refunds(&[(4021, 0), (1, 0)]),
        expect![[r#"
            warning: .refunds[0].total_refund_amount_cents: invalid (the refunds of the order make 4021, but its total is 4020)
        "#]],
    );
}
