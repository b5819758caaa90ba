use super::*;

#[test]
fn amounts_are_typed_in_the_major_unit() {
    for (text, digits, cents) in [
        ("5.95", 2, Some(595)),
        ("5,9", 2, Some(590)),
        ("5", 2, Some(500)),
        ("", 2, Some(0)),
        ("500", 0, Some(500)),
        ("1.234", 3, Some(1234)),
        ("5.955", 2, None),
        ("-1", 2, None),
        ("5.9.5", 2, None),
        ("five", 2, None),
    ] {
        assert_eq!(parse_amount(text, digits), cents, "{text}");
    }
    assert_eq!(amount_text(595, "EUR"), "5.95");
    assert_eq!(amount_text(5, "EUR"), "0.05");
    assert_eq!(amount_text(500, "JPY"), "500");
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn reasons_are_sent_in_the_order_of_their_positions_without_empty_rows() {
    let mut form = PolicyForm::read(&fields(&[
        ("reason_1_code", "A"),
        ("reason_1_label", "First"),
        ("reason_1_position", "2"),
        ("reason_2_code", ""),
        ("reason_2_label", ""),
        ("reason_2_position", "3"),
        ("reason_3_code", "B"),
        ("reason_3_label", "Second"),
        ("reason_3_exchange", "true"),
        ("reason_3_position", "1"),
        ("method_mail-back", "true"),
        ("cost_mail-back", "5.95"),
        ("cost_customer-keep", "not offered"),
    ]));
    let body = form.body("EUR");
    assert_eq!(
        body,
        json!({
            "reasons": [
                { "code": "B", "label": "Second", "offers_exchange": true },
                { "code": "A", "label": "First", "offers_exchange": false },
            ],
            "methods": [{ "method": "mail-back", "shipping_cost_cents": 595 }],
            "free_exchange_shipping": false,
            "gift_card": null,
        })
    );
    let positions: Vec<_> = form.reasons.iter().map(|row| row.position.as_str()).collect();
    assert_eq!(positions, ["1", "2", "3", "4", "5"]);
}

#[test]
fn a_wrong_amount_is_an_error_beside_its_field() {
    let mut form =
        PolicyForm::read(&fields(&[("gift_card_sku", "CARD"), ("gift_card_bonus", "much")]));
    let sent = form.body("EUR")["gift_card"]["bonus_credit_amount_cents"].clone();
    assert_eq!(sent, json!("much"), "auth rejects the text together with other faults");
    assert!(!form.gift_card_bonus.is_valid());
}

#[test]
fn errors_of_auth_are_beside_their_fields() {
    let mut form = PolicyForm::read(&fields(&[
        ("reason_1_code", "A"),
        ("reason_1_label", ""),
        ("method_customer-keep", "true"),
    ]));
    let text = r#"{"message": "m", "errors": [
        {"field": "$.returns.reasons[0].label", "code": "invalid", "detail": "must not be empty"},
        {"field": "$.returns.methods[0].shipping_cost_cents", "code": "invalid", "detail": "too much"}]}"#;
    form.reject(&serde_json::from_str(text).unwrap());
    let errors: Vec<_> = form.reasons.iter().filter_map(|row| row.label.error.as_deref()).collect();
    assert_eq!(errors, ["Must not be empty."]);
    let keep = form.methods.iter().find(|row| row.method == "customer-keep").unwrap();
    assert_eq!(keep.cost.error.as_deref(), Some("Too much."));
}
