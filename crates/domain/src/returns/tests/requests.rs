use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::json::{Document, FieldError};
use crate::merchant::ReturnPolicy;

fn read(body: &Value, policy: &ReturnPolicy) -> Result<ReturnRequest, String> {
    ReturnRequest::read(&Document::from(body.clone()), policy)
        .map_err(|invalid| lines(&invalid.errors))
}

fn lines(errors: &[FieldError]) -> String {
    errors.iter().map(|error| format!("{error}\n")).collect()
}

#[track_caller]
fn check(body: &Value, policy: &ReturnPolicy, expected: Expect) {
    expected.assert_eq(&read(body, policy).unwrap_err());
}

fn with_card() -> ReturnPolicy {
    let card = GiftCardOffer { sku: "CARD".to_owned(), bonus_credit_amount_cents: 500 };
    ReturnPolicy { gift_card: Some(card), ..ReturnPolicy::default() }
}

fn named(unit: i64, rest: &Value) -> Value {
    let mut named = json!({
        "order_identifier": "A", "order_line_item_identifier": "L1", "unit": unit,
        "return_reason": "TOO_SMALL",
    });
    for (key, value) in rest.as_object().unwrap() {
        named[key] = value.clone();
    }
    named
}

fn variant_body() -> Value {
    json!({ "sku": "SHIRT-L", "title": "Shirt, L", "unit_price_amount_cents": 1000 })
}

#[test]
fn a_request_names_units_reasons_and_what_the_shopper_wants() {
    let body = json!({
        "return_method": "mail-back",
        "units": [
            named(1, &json!({ "resolution": "refund" })),
            named(2, &json!({ "resolution": "exchange", "variant": variant_body() })),
            named(3, &json!({ "resolution": "gift_card", "return_reason": "OTHER" })),
        ],
        "gift_refund_only": true, "giftee_email": "gia@mail.example",
        "override": { "by": "kim", "reason": "a good customer" },
    });
    let request = read(&body, &with_card()).unwrap();
    let wanted: Vec<_> = request.units.iter().map(|unit| unit.resolution.clone()).collect();
    assert_eq!(wanted, [Resolution::Refund, variant(1000), Resolution::GiftCard]);
    assert_eq!(request.units[2].return_reason, "OTHER");
    assert_eq!(request.giftee_email.as_deref(), Some("gia@mail.example"));
    assert_eq!(request.staff_override.as_ref().unwrap().by, "kim");
    // What was read is written the way it is read.
    assert_eq!(json!(request), body);
}

#[test]
fn every_failing_field_is_named_at_once() {
    let policy = ReturnPolicy::default();
    check(
        &json!({}),
        &policy,
        expect![[r#"
        $.return_method: missing_field
        $.units: missing_field
    "#]],
    );
    let exchange = json!({ "resolution": "exchange", "return_reason": "OTHER" });
    let body = json!({
        "return_method": "customer-keep",
        "units": [
            named(0, &json!({ "return_reason": "BORED", "resolution": "swap" })),
            named(1, &exchange),
            named(1, &json!({ "resolution": "gift_card", "variant": variant_body() })),
            named(2, &json!({ "resolution": "exchange", "variant": { "sku": "", "title": 1 } })),
            7,
        ],
        "gift_refund_only": "yes", "giftee_email": "nobody",
        "override": { "by": "" },
    });
    check(
        &body,
        &policy,
        expect![[r#"
        $.return_method: invalid (must be one of mail-back, express-returns)
        $.units[0].unit: invalid (must be between 1 and 1000)
        $.units[0].return_reason: invalid (must be one of TOO_SMALL, TOO_LARGE, WRONG_ITEM, DAMAGED, CHANGED_MIND, OTHER)
        $.units[0].resolution: invalid (must be one of refund, exchange, gift_card)
        $.units[1].resolution: invalid (this reason offers no exchange)
        $.units[1].variant: missing_field
        $.units[2].variant: invalid (comes only with the resolution exchange)
        $.units[2].resolution: invalid (this merchant offers no gift card)
        $.units[2].unit: invalid (the same unit is listed twice)
        $.units[3].variant.sku: invalid (must have 1 to 255 characters)
        $.units[3].variant.title: invalid_type (expected a string, found an integer)
        $.units[4]: invalid_type (expected an object, found an integer)
        $.gift_refund_only: invalid_type (expected a boolean, found a string)
        $.giftee_email: invalid (must be an e-mail address)
        $.override.by: invalid (must have 1 to 255 characters)
        $.override.reason: missing_field
    "#]],
    );
}

#[test]
fn what_a_request_may_not_say_is_refused() {
    let wanted = json!({ "resolution": "exchange", "quantity": 2, "variant": {
        "sku": "SHIRT-L", "title": "Shirt, L", "size": "L",
    } });
    let body = json!({
        "return_method": "mail-back", "units": [named(1, &wanted)], "giftee_mail": "gia",
        "override": { "by": "kim", "reason": "a good customer", "until": "noon" },
    });
    check(
        &body,
        &ReturnPolicy::default(),
        expect![[r#"
            $.giftee_mail: invalid (unknown field: known are return_method, units, gift_refund_only, giftee_email, override)
            $.units[0].quantity: invalid (unknown field: known are order_identifier, order_line_item_identifier, unit, return_reason, resolution, variant)
            $.units[0].variant.size: invalid (unknown field: known are sku, title, unit_price_amount_cents, product_identifier)
            $.override.until: invalid (unknown field: known are by, reason)
        "#]],
    );
}

#[test]
fn a_return_is_of_a_few_orders() {
    let of = |orders: i32| {
        let unit = |order: i32| {
            named(1, &json!({ "order_identifier": format!("A{order}"), "resolution": "refund" }))
        };
        let again = named(2, &json!({ "order_identifier": "A1", "resolution": "refund" }));
        let units: Vec<_> = (1..=orders).map(unit).chain([again]).collect();
        json!({ "return_method": "mail-back", "units": units })
    };
    let policy = ReturnPolicy::default();
    assert_eq!(read(&of(24), &policy).unwrap().units.len(), 25);
    let expected = expect![[r#"
        $.units: invalid (must be of at most 24 orders)
    "#]];
    check(&of(25), &policy, expected);
}

#[test]
fn a_variant_without_a_price_costs_what_the_unit_did() {
    let variant = json!({ "sku": "SHIRT-L", "title": "Shirt, L", "unit_price_amount_cents": null });
    let body = json!({
        "return_method": "mail-back",
        "units": [named(1, &json!({ "resolution": "exchange", "variant": variant }))],
    });
    let request = read(&body, &ReturnPolicy::default()).unwrap();
    let resolution = &request.units[0].resolution;
    for price in [0, 1000] {
        assert_eq!(resolution.refund_type(price), RefundType::EvenExchange);
    }
    assert_eq!(self::variant(999).refund_type(1000), RefundType::UnevenExchange);
}

#[test]
fn a_gift_comes_with_its_giftee_or_not_at_all() {
    let body = |more: Value| {
        let mut body = json!({
            "return_method": "mail-back", "units": [named(1, &json!({ "resolution": "refund" }))],
        });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        read(&body, &ReturnPolicy::default()).map(|request| request.giftee_email)
    };
    assert_eq!(body(json!({})), Ok(None));
    assert_eq!(body(json!({ "gift_refund_only": false, "giftee_email": null })), Ok(None));
    let missing = body(json!({ "gift_refund_only": true })).unwrap_err();
    assert_eq!(missing, "$.giftee_email: missing_field\n");
    let alone = body(json!({ "giftee_email": "gia@mail.example" })).unwrap_err();
    assert_eq!(alone, "$.giftee_email: invalid (comes only with gift_refund_only)\n");
}

#[test]
fn an_item_is_exchanged_only_where_there_are_variants() {
    let body = json!({
        "return_method": "mail-back",
        "units": [
            named(1, &json!({ "resolution": "refund" })),
            named(2, &json!({ "resolution": "exchange", "variant": variant_body() })),
            named(3, &json!({ "resolution": "gift_card" })),
        ],
    });
    let request = read(&body, &with_card()).unwrap();
    assert_eq!(request.exchange_errors(|_| Some(true)), []);
    expect![[r#"
        $.units[1].resolution: invalid (there are no variants of this item)
    "#]]
    .assert_eq(&lines(&request.exchange_errors(|_| Some(false))));
    assert_eq!(request.exchange_errors(|_| None), []);
}
