//! The published schemas match the types, and the messages match the schemas.

use std::sync::LazyLock;

use expect_test::expect_file;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::*;
use crate::access::MerchantId;
use crate::event::Event as _;
use crate::exchange::{
    ExchangeFailed, ExchangePlaced, ExchangeRenamed, ExchangeUndeliverable, FailedItem,
    FailureReason, PlacedItem,
};
use crate::schema::json_schema;
use crate::warehouse::UnitReceived;

static MESSAGE: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::options().should_validate_formats(true).build(&message_schema()).unwrap()
});

fn message_schema() -> Value {
    let mut schema = json_schema::<RmaMessage>("RMA message");
    // A gift requires a giftee, and a giftee requires a gift.
    let giftee = json!({ "required": ["giftee_email"] });
    schema["if"] = json!({ "properties": { "gift_refund_only": { "const": true } } });
    schema["else"] = json!({ "not": &giftee });
    schema["then"] = giftee;
    schema
}

/// The schemas of the events about returns and exchanges, by the name of their file.
fn event_schemas() -> [(&'static str, Value); 6] {
    [
        ("return-confirmed", json_schema::<ReturnConfirmed>(ReturnConfirmed::TYPE)),
        ("unit-received", json_schema::<UnitReceived>(UnitReceived::TYPE)),
        ("exchange-placed", json_schema::<ExchangePlaced>(ExchangePlaced::TYPE)),
        ("exchange-failed", json_schema::<ExchangeFailed>(ExchangeFailed::TYPE)),
        (
            "exchange-undeliverable",
            json_schema::<ExchangeUndeliverable>(ExchangeUndeliverable::TYPE),
        ),
        ("exchange-renamed", json_schema::<ExchangeRenamed>(ExchangeRenamed::TYPE)),
    ]
}

#[track_caller]
pub(super) fn check_message(message: &RmaMessage) {
    let message = json!(message);
    let errors: Vec<_> = MESSAGE.iter_errors(&message).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{message:#}\n{errors:?}");
}

fn pretty(schema: &Value) -> String {
    format!("{schema:#}\n")
}

#[test]
fn the_message_schema_is_up_to_date() {
    expect_file!["../../../../../proto-schemas/messages/rma.schema.json"]
        .assert_eq(&pretty(&message_schema()));
}

#[test]
fn the_event_schemas_are_up_to_date() {
    for (name, schema) in event_schemas() {
        let file = format!("../../../../../proto-schemas/events/{name}.schema.json");
        expect_file![file].assert_eq(&pretty(&schema));
    }
}

fn exchanged(replacement: Replacement) -> ConfirmedUnit {
    ConfirmedUnit {
        id: unit("A/L1/1"),
        sku: "SHIRT-M".to_owned(),
        title: "Shirt, M".to_owned(),
        product_identifier: "SHIRT".to_owned(),
        variant_identifier: None,
        concept: None,
        unit_price_amount_cents: 1000,
        product_amount_cents: 1000,
        discount_amount_cents: 0,
        tax_amount_cents: 80,
        bonus_amount_cents: 0,
        replacement,
    }
}

/// A sample of each event, in the order of their schemas.
fn event_samples() -> [Value; 6] {
    let sample = order("A", vec![line("L1", 1, amounts(1000, 0, 80))]);
    let merchant: MerchantId = "acme".parse().unwrap();
    let rma_identifier = "RMA-1".to_owned();
    let confirmed = json!(ReturnConfirmed {
        merchant: merchant.clone(),
        rma_identifier: rma_identifier.clone(),
        original_order_id: "A".to_owned(),
        currency: sample.currency,
        is_gift: false,
        customer: sample.customer,
        shipping_address: sample.shipping_address,
        billing_address: sample.billing_address,
        units: vec![exchanged(Replacement::GiftCard), exchanged(variant(1).replacement().unwrap())],
        gift_card: Some(GiftCardOffer { sku: "CARD".to_owned(), bonus_credit_amount_cents: 0 }),
        confirmed_at: minute(0),
    });
    let placed = json!(ExchangePlaced {
        merchant: merchant.clone(),
        rma_identifier: rma_identifier.clone(),
        original_order_id: "A".to_owned(),
        exchange_order_identifier: "X-1".to_owned(),
        own_identifier: "X-1".to_owned(),
        rejected_identifier: Some("A".to_owned()),
        items: vec![PlacedItem {
            unit: unit("A/L1/1"),
            refund_type: RefundType::EvenExchange,
            unit_price_amount_cents: Some(1000),
        }],
        ordered_at: minute(0),
        placed_at: minute(1),
    });
    let failed = json!(ExchangeFailed {
        merchant: merchant.clone(),
        rma_identifier: rma_identifier.clone(),
        original_order_id: "A".to_owned(),
        items: vec![FailedItem {
            unit: unit("A/L1/1"),
            reason: FailureReason::OutOfStock,
            detail: "sold out".to_owned(),
        }],
        failed_at: minute(1),
    });
    let undeliverable = json!(ExchangeUndeliverable {
        merchant: merchant.clone(),
        rma_identifier: rma_identifier.clone(),
        original_order_id: "A".to_owned(),
        items: vec![unit("A/L1/1")],
        reason: "responded with 503".to_owned(),
        at: minute(1),
    });
    let renamed = json!(ExchangeRenamed {
        merchant,
        rma_identifier,
        original_order_id: "A".to_owned(),
        rejected_identifier: "1001".to_owned(),
        exchange_order_identifier: "X-1".to_owned(),
        renamed_at: minute(1),
    });
    let received = json!(receiving::unit_received(Some("L1"), None, None));
    [confirmed, received, placed, failed, undeliverable, renamed]
}

#[test]
fn events_match_their_schemas() {
    for ((name, schema), event) in event_schemas().iter().zip(event_samples()) {
        let schema = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
        let errors: Vec<_> = schema.iter_errors(&event).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {event:#}\n{errors:?}");
        for key in event.as_object().unwrap().keys().filter(|key| *key != "gift_card") {
            let mut invalid = event.clone();
            invalid.as_object_mut().unwrap().remove(key);
            let optional = [
                ("unit-received", "reference_line_identifier"),
                ("unit-received", "sku"),
                ("exchange-placed", "rejected_identifier"),
            ];
            let is_optional = optional.contains(&(*name, key.as_str()));
            assert_eq!(schema.is_valid(&invalid), is_optional, "{name} without {key}");
        }
    }
}

#[test]
fn the_schema_rejects_invalid_messages() {
    let message = json!(rma("RMA-1", &["A/L1/1"]).message());
    assert!(MESSAGE.is_valid(&message));
    for (pointer, key) in [("", "status"), ("/items/0", "tracking_number"), ("/items/0", "sku")] {
        let mut invalid = message.clone();
        let object = invalid.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        object.remove(key).unwrap();
        assert!(!MESSAGE.is_valid(&invalid), "{key} may not be left out");
    }
    let mut gift = message.clone();
    gift["gift_refund_only"] = json!(true);
    assert!(!MESSAGE.is_valid(&gift), "a gift requires a giftee");
    gift["giftee_email"] = json!("gia@mail.example");
    assert!(MESSAGE.is_valid(&gift));
    gift["gift_refund_only"] = json!(false);
    assert!(!MESSAGE.is_valid(&gift), "a giftee requires a gift");
    let invalid_values = [
        ("/status", json!("LOST")),
        ("/items", json!([])),
        ("/items/0/receiving_status", Value::Null),
        ("/items/0/package_tracking_status", json!("LOST")),
        ("/items/0/refund_type", json!("refund")),
        ("/return_method", json!("mail_back")),
        ("/return_shipping_cost_cents", json!(-1)),
        ("/items/0/refund_financials/estimated_refund_amount_cents", json!(1.5)),
    ];
    for (pointer, value) in invalid_values {
        let mut invalid = message.clone();
        *invalid.pointer_mut(pointer).unwrap() = value;
        assert!(!MESSAGE.is_valid(&invalid), "{pointer}");
    }
}
