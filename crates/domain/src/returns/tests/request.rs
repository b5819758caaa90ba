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

fn policy_with_gift_card() -> ReturnPolicy {
    let card = GiftCardOffer { sku: "CARD".to_owned(), bonus_credit_amount_cents: 500 };
    ReturnPolicy { gift_card: Some(card), ..ReturnPolicy::default() }
}

fn unit_body(unit: i64, rest: &Value) -> Value {
    let mut body = json!({
        "order_identifier": "A", "order_line_item_identifier": "L1", "unit": unit,
        "return_reason": "TOO_SMALL",
    });
    for (key, value) in rest.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn variant_body() -> Value {
    json!({ "sku": "SHIRT-L", "title": "Shirt, L", "unit_price_amount_cents": 1000 })
}

#[test]
fn a_valid_request_is_read_and_written_back() {
    let body = json!({
        "return_method": "mail-back",
        "units": [
            unit_body(1, &json!({ "resolution": "refund" })),
            unit_body(2, &json!({ "resolution": "exchange", "variant": variant_body() })),
            unit_body(3, &json!({ "resolution": "gift_card", "return_reason": "OTHER", "comment": "Scratches\nmy neck" })),
        ],
        "gift_refund_only": true, "giftee_email": "gia@mail.example",
        "override": { "by": "kim", "reason": "a good customer" },
    });
    let request = read(&body, &policy_with_gift_card()).unwrap();
    let wanted: Vec<_> = request.units.iter().map(|unit| unit.resolution.clone()).collect();
    assert_eq!(wanted, [Resolution::Refund, variant(1000), Resolution::GiftCard]);
    assert_eq!(request.units[2].return_reason, "OTHER");
    assert_eq!(request.giftee_email.as_deref(), Some("gia@mail.example"));
    assert_eq!(request.staff_override.as_ref().unwrap().by, "kim");
    assert_eq!(json!(request), body);
}

#[test]
fn every_invalid_field_is_reported_at_once() {
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
            unit_body(0, &json!({ "return_reason": "BORED", "resolution": "swap" })),
            unit_body(1, &exchange),
            unit_body(1, &json!({ "resolution": "gift_card", "variant": variant_body() })),
            unit_body(2, &json!({ "resolution": "exchange", "variant": { "sku": "", "title": 1 } })),
            7,
        ],
        "gift_refund_only": "yes", "giftee_email": "nobody",
        "language": "it", "override": { "by": "" },
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
        $.language: invalid (must be one of en, de, fr, es)
        $.override.by: invalid (must have 1 to 255 characters)
        $.override.reason: missing_field
    "#]],
    );
}

#[test]
fn a_comment_is_a_text_of_up_to_1000_characters() {
    let comment = |comment: Value| {
        let unit = unit_body(1, &json!({ "resolution": "refund", "comment": comment }));
        let body = json!({ "return_method": "mail-back", "units": [unit] });
        read(&body, &ReturnPolicy::default()).map(|mut it| it.units.remove(0).comment)
    };
    assert_eq!(comment(Value::Null), Ok(None));
    assert_eq!(
        comment(json!("Too tight\r\nat the neck")),
        Ok(Some("Too tight\nat the neck".to_owned()))
    );
    let longest = "é".repeat(1_000);
    assert_eq!(comment(json!(longest)), Ok(Some(longest)));
    for text in [String::new(), "x".repeat(1_001)] {
        let error = comment(json!(text)).unwrap_err();
        assert_eq!(error, "$.units[0].comment: invalid (must have 1 to 1000 characters)\n");
    }
    for text in ["a\u{7}b", "a\u{202e}b"] {
        let error = comment(json!(text)).unwrap_err();
        let detail = "must not contain control or bidirectional characters";
        assert_eq!(error, format!("$.units[0].comment: invalid ({detail})\n"));
    }
}

#[test]
fn unknown_fields_are_rejected() {
    let wanted = json!({ "resolution": "exchange", "quantity": 2, "variant": {
        "sku": "SHIRT-L", "title": "Shirt, L", "size": "L",
    } });
    let body = json!({
        "return_method": "mail-back", "units": [unit_body(1, &wanted)], "giftee_mail": "gia",
        "override": { "by": "kim", "reason": "a good customer", "until": "noon" },
    });
    check(
        &body,
        &ReturnPolicy::default(),
        expect![[r#"
            $.giftee_mail: invalid (unknown field: known are return_method, units, gift_refund_only, giftee_email, withdrawal, override)
            $.units[0].quantity: invalid (unknown field: known are order_identifier, order_line_item_identifier, unit, return_reason, comment, resolution, variant)
            $.units[0].variant.size: invalid (unknown field: known are sku, title, unit_price_amount_cents, product_identifier)
            $.override.until: invalid (unknown field: known are by, reason)
        "#]],
    );
}

#[test]
fn a_return_has_units_of_at_most_24_orders() {
    let request_for = |orders: i32| {
        let unit = |order: i32| {
            unit_body(
                1,
                &json!({ "order_identifier": format!("A{order}"), "resolution": "refund" }),
            )
        };
        let again = unit_body(2, &json!({ "order_identifier": "A1", "resolution": "refund" }));
        let units: Vec<_> = (1..=orders).map(unit).chain([again]).collect();
        json!({ "return_method": "mail-back", "units": units })
    };
    let policy = ReturnPolicy::default();
    assert_eq!(read(&request_for(24), &policy).unwrap().units.len(), 25);
    let expected = expect![[r#"
        $.units: invalid (must be of at most 24 orders)
    "#]];
    check(&request_for(25), &policy, expected);
}

#[test]
fn a_variant_without_a_price_has_the_price_of_the_unit() {
    let variant = json!({ "sku": "SHIRT-L", "title": "Shirt, L", "unit_price_amount_cents": null });
    let body = json!({
        "return_method": "mail-back",
        "units": [unit_body(1, &json!({ "resolution": "exchange", "variant": variant }))],
    });
    let request = read(&body, &ReturnPolicy::default()).unwrap();
    let resolution = &request.units[0].resolution;
    for price in [0, 1000] {
        assert_eq!(resolution.refund_type(price), RefundType::EvenExchange);
    }
    assert_eq!(self::variant(999).refund_type(1000), RefundType::UnevenExchange);
}

#[test]
fn a_gift_requires_a_giftee() {
    let body = |more: Value| {
        let mut body = json!({
            "return_method": "mail-back", "units": [unit_body(1, &json!({ "resolution": "refund" }))],
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
fn a_withdrawal_names_a_person_and_has_no_other_reason() {
    let policy = ReturnPolicy::default().with_withdrawal();
    let body = |reasons: [&str; 2], person: Value| {
        let unit = |(number, reason): (i64, &str)| {
            unit_body(number, &json!({ "resolution": "refund", "return_reason": reason }))
        };
        let units: Vec<_> = (1..).zip(reasons).map(unit).collect();
        let body = json!({ "return_method": "mail-back", "units": units, "withdrawal": person });
        read(&body, &policy).map(|request| request.withdrawal)
    };
    let [name, email] = ["Mia Moreau", "mia@mail.example"].map(str::to_owned);
    let person = json!({ "name": name, "email": email });
    let withdrawn = ["withdrawal", "withdrawal"];
    assert_eq!(body(withdrawn, Value::Null), Ok(None));
    assert_eq!(body(withdrawn, person.clone()), Ok(Some(Withdrawal { name, email })));
    assert_eq!(
        body(["withdrawal", "OTHER"], person).unwrap_err(),
        "$.withdrawal: invalid (comes only with the reason withdrawal)\n"
    );
    let gift = json!({
        "return_method": "mail-back", "gift_refund_only": true, "giftee_email": "bob@mail.example",
        "units": [unit_body(1, &json!({ "resolution": "refund", "return_reason": "withdrawal" }))],
        "withdrawal": { "name": "Mia", "email": "mia@mail.example" },
    });
    assert_eq!(
        read(&gift, &policy).unwrap_err(),
        "$.withdrawal: invalid (does not come with giftee_email: a giftee has no contract)\n"
    );
    assert_eq!(
        body(withdrawn, json!({ "name": "", "email": "mia" })).unwrap_err(),
        "$.withdrawal.name: invalid (must have 1 to 255 characters)\n\
         $.withdrawal.email: invalid (must be an e-mail address)\n"
    );
}

#[test]
fn a_unit_without_variants_cannot_be_exchanged() {
    let body = json!({
        "return_method": "mail-back",
        "units": [
            unit_body(1, &json!({ "resolution": "refund" })),
            unit_body(2, &json!({ "resolution": "exchange", "variant": variant_body() })),
            unit_body(3, &json!({ "resolution": "gift_card" })),
        ],
    });
    let request = read(&body, &policy_with_gift_card()).unwrap();
    assert_eq!(request.exchange_errors(|_| Some(true)), []);
    expect![[r#"
        $.units[1].resolution: invalid (there are no variants of this item)
    "#]]
    .assert_eq(&lines(&request.exchange_errors(|_| Some(false))));
    assert_eq!(request.exchange_errors(|_| None), []);
}
