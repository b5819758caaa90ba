use expect_test::expect;
use serde_json::json;
use uuid::Uuid;

use super::confirmed;
use crate::exchange::{
    ExchangeOrder, ExchangeOrderResponse, OrderAmounts, Unplaceable, VariantLookups, Variants,
    check_variants, exchange_order_schema,
};

#[test]
fn units_of_a_line_with_the_same_variant_are_one_item() {
    let confirmed = confirmed();
    let units = check_variants(&confirmed.units, false, &VariantLookups::new()).exchangeable;
    let order = ExchangeOrder::new(&confirmed, &units, Some("Acme"), Uuid::nil()).unwrap();
    let written = serde_json::to_value(&order).unwrap();
    expect![[r#"
        [
          {
            "concept": "Acme Sport",
            "discount_amount_cents": 101,
            "original_item_identifier": "L1",
            "original_sku": "TEE-S",
            "product_amount_cents": 2000,
            "product_identifier": "P-1",
            "quantity": 1,
            "sku": "TEE-M",
            "tax_amount_cents": 150,
            "title": "Shirt TEE-M",
            "unit_price_amount_cents": 2000,
            "variant_identifier": "TEE"
          },
          {
            "concept": "Acme Sport",
            "discount_amount_cents": 203,
            "original_item_identifier": "L2",
            "original_sku": "TEE-S",
            "product_amount_cents": 4000,
            "product_identifier": "P-1",
            "quantity": 2,
            "sku": "TEE-RED",
            "tax_amount_cents": 300,
            "title": "Shirt TEE-RED",
            "unit_price_amount_cents": 2000,
            "variant_identifier": "TEE"
          },
          {
            "bonus_credit_amount_cents": 500,
            "quantity": 1,
            "return_items": [
              {
                "concept": "Acme Sport",
                "original_item_identifier": "L3",
                "original_sku": "TEE-S",
                "quantity": 1,
                "title": "Shirt"
              }
            ],
            "sku": "GIFT",
            "unit_price_amount_cents": 2049
          }
        ]"#]]
    .assert_eq(&format!("{:#}", written["items"]));
    let schema = jsonschema::validator_for(&exchange_order_schema()).unwrap();
    assert!(schema.is_valid(&written), "{:?}", schema.validate(&written).err());
    assert_eq!(serde_json::from_value::<ExchangeOrder>(written).unwrap(), order);
}

#[test]
fn an_uneven_exchange_has_the_price_of_the_variant() {
    let mut confirmed = confirmed();
    confirmed.units[1].concept = None;
    confirmed.units[2].concept = None;
    let response = json!([{"sku": "TEE-RED", "title": "Red", "unit_price_amount_cents": 2500}]);
    let variants = Variants::read(response.to_string().as_bytes()).unwrap();
    let lookups = VariantLookups::from([("TEE", Some(&variants))]);
    let units = check_variants(&confirmed.units[1..3], false, &lookups).exchangeable;
    let order = ExchangeOrder::new(&confirmed, &units, Some("Acme"), Uuid::nil()).unwrap();
    let item = &serde_json::to_value(&order).unwrap()["items"][0];
    let field = |name: &str| item[name].as_i64().unwrap();
    assert_eq!((field("quantity"), field("unit_price_amount_cents")), (2, 2500));
    assert_eq!((field("product_amount_cents"), field("tax_amount_cents")), (5000, 0));
    assert_eq!((field("discount_amount_cents"), &item["concept"]), (0, &json!("Acme")));
}

#[test]
fn no_units_or_an_unknown_gift_card_make_no_order() {
    let mut confirmed = confirmed();
    let error = |confirmed: &crate::returns::ReturnConfirmed, from: usize| {
        let units =
            check_variants(&confirmed.units[from..], false, &VariantLookups::new()).exchangeable;
        ExchangeOrder::new(confirmed, &units, None, Uuid::nil()).err()
    };
    assert_eq!(error(&confirmed, 4), Some(Unplaceable::NoUnits));
    confirmed.gift_card = None;
    assert_eq!(error(&confirmed, 0), Some(Unplaceable::NoGiftCard));
}

#[test]
fn every_field_of_a_response_is_optional() {
    let identifier = |response: serde_json::Value| {
        ExchangeOrderResponse::read(response.to_string().as_bytes())
            .order_identifier
            .unwrap_or_default()
    };
    assert_eq!(identifier(json!({"order_identifier": "EX-1", "id": 7})), "EX-1");
    assert_eq!(identifier(json!({"identifier": "EX-2"})), "EX-2");
    assert_eq!(identifier(json!({"order_identifier": "", "id": 7})), "7");
    for response in [json!({}), json!([]), json!(null), json!({"id": "x".repeat(256)})] {
        assert_eq!(identifier(response), "");
    }
    assert_eq!(ExchangeOrderResponse::read(b"thank you"), ExchangeOrderResponse::default());
    let computed =
        json!({"total_amount_cents": 10, "tax_amount_cents": -1, "shipping_amount_cents": "3"});
    let amounts = OrderAmounts { total_amount_cents: Some(10), ..OrderAmounts::default() };
    assert_eq!(ExchangeOrderResponse::read(computed.to_string().as_bytes()).amounts, amounts);
}
