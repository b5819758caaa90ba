//! Tests from a confirmed return to the merchant and back.

use std::collections::BTreeSet;

use domain::exchange::{ExchangeFailed, FailureReason, exchange_order_schema};
use domain::merchant::Merchant;
use domain::returns::{RefundType, ReturnConfirmed};
use messaging::Envelope;
use platform::Clock;
use serde_json::{Value, json};

use super::app::{TestApp, confirmed, exchanged, gift_card_unit, reason};

/// Fields that the contract lists for a replacement variant, a gift card, its returned items and the
/// exchange order.
const EXCHANGE: [&str; 12] = [
    "sku",
    "quantity",
    "title",
    "unit_price_amount_cents",
    "product_amount_cents",
    "discount_amount_cents",
    "tax_amount_cents",
    "product_identifier",
    "variant_identifier",
    "original_sku",
    "original_item_identifier",
    "concept",
];
const GIFT_CARD: [&str; 5] =
    ["sku", "quantity", "unit_price_amount_cents", "bonus_credit_amount_cents", "return_items"];
const RETURNED: [&str; 5] =
    ["title", "original_sku", "original_item_identifier", "quantity", "concept"];
const ORDER: [&str; 9] = [
    "items",
    "customer",
    "payment",
    "original_order_id",
    "currency",
    "is_gift",
    "rma_identifier",
    "shipping_address",
    "billing_address",
];

#[track_caller]
fn has_exactly(object: &Value, fields: &[&str]) {
    let found: BTreeSet<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, fields.iter().copied().collect());
}

/// Confirms a return and returns the message that arrived at the merchant.
async fn delivered(app: &TestApp, confirmed: &ReturnConfirmed) -> Value {
    app.confirm(confirmed).await;
    let placed = app.placed().await;
    let order = &confirmed.original_order_id;
    assert_eq!(placed.exchange_order_identifier, format!("EX-{order}"));
    assert_eq!(placed.rma_identifier, confirmed.rma_identifier);
    let units: Vec<_> = confirmed.units.iter().map(|unit| unit.id.clone()).collect();
    let placed: Vec<_> = placed.items.into_iter().map(|item| item.unit).collect();
    assert_eq!(placed, units);
    app.wait_until_idle().await;
    let mut arrived = app.journal("/exchange_orders").await;
    assert_eq!(arrived.len(), 1);
    let entry = arrived.remove(0);
    assert_eq!(entry.headers["x-service-event"], "exchange_order.created");
    assert_eq!(entry.headers["x-service-api-version"], "2");
    assert_eq!(entry.headers["x-service-id"], json!(app.service.own("acme")));
    has_exactly(&entry.body, &ORDER);
    has_exactly(&entry.body["payment"], &["transaction_id"]);
    let schema = jsonschema::validator_for(&exchange_order_schema()).unwrap();
    assert!(schema.is_valid(&entry.body), "{:?}", schema.validate(&entry.body).err());
    for (field, want) in [
        ("original_order_id", json!(confirmed.original_order_id)),
        ("rma_identifier", json!(confirmed.rma_identifier)),
        ("currency", json!("USD")),
        ("is_gift", json!(confirmed.is_gift)),
        ("customer", json!(confirmed.customer)),
        ("shipping_address", json!(confirmed.shipping_address)),
        ("billing_address", json!(confirmed.billing_address)),
    ] {
        assert_eq!(entry.body[field], want, "{field}");
    }
    entry.body
}

#[tokio::test]
async fn an_even_exchange() {
    let app = TestApp::start().await;
    let units = [exchanged("L1", 1, "TEE-M", 2500), exchanged("L1", 2, "TEE-M", 2500)];
    let body = delivered(&app, &confirmed("R-1", "1001", &units)).await;
    let items = body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    has_exactly(&items[0], &EXCHANGE);
    assert_eq!(
        items[0],
        json!({
            "sku": "TEE-M", "quantity": 2, "title": "Shirt TEE-M",
            "unit_price_amount_cents": 2500, "product_amount_cents": 5000,
            "discount_amount_cents": 400, "tax_amount_cents": 300,
            "product_identifier": "P-1", "variant_identifier": "TEE", "original_sku": "TEE-XL",
            "original_item_identifier": "L1", "concept": "Acme Sport",
        })
    );
}

#[tokio::test]
async fn an_uneven_exchange_has_the_price_of_the_variant() {
    let app = TestApp::start().await;
    let higher_price = json!([{"sku": "TEE-S", "title": "Small", "unit_price_amount_cents": 3000}]);
    app.behave("/sku/TEE/variants", json!([{"do": "respond", "body": higher_price}])).await;
    let units = [exchanged("L1", 1, "TEE-S", 3000), exchanged("L1", 2, "TEE-S", 3000)];
    let body = delivered(&app, &confirmed("R-1", "1001", &units)).await;
    let item = &body["items"][0];
    has_exactly(item, &EXCHANGE);
    let amounts = |item: &Value| {
        ["quantity", "unit_price_amount_cents", "product_amount_cents"]
            .map(|field| item[field].clone())
    };
    assert_eq!(amounts(item), [2, 3000, 6000]);
    assert_eq!((&item["discount_amount_cents"], &item["tax_amount_cents"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn the_event_has_the_refund_type_and_price_of_each_unit() {
    let app = TestApp::start().await;
    let variants = json!([
        {"sku": "TEE-S", "title": "Small", "unit_price_amount_cents": 3000},
        {"sku": "TEE-M", "title": "Medium", "unit_price_amount_cents": 2500},
    ]);
    app.behave("/sku/TEE/variants", json!([{"do": "respond", "body": variants}])).await;
    let units = [
        exchanged("L1", 1, "TEE-S", 3000),
        exchanged("L2", 1, "TEE-M", 2500),
        gift_card_unit("L3", 1),
    ];
    app.confirm(&confirmed("R-1", "1001", &units)).await;
    let placed = app.placed().await;
    let terms: Vec<_> =
        placed.items.iter().map(|it| (it.refund_type, it.unit_price_amount_cents)).collect();
    let expected = [
        (RefundType::UnevenExchange, Some(3000)),
        (RefundType::EvenExchange, Some(2500)),
        (RefundType::UnevenExchange, None),
    ];
    assert_eq!(terms, expected);
    app.wait_until_idle().await;
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["items"], json!(placed.items));
    assert_eq!(shown["price_check"], "checked");
}

#[tokio::test]
async fn an_item_without_a_concept_gets_the_merchants() {
    let concept = |acme: &mut Merchant| acme.settings.concept = Some("Acme Home".to_owned());
    let app = TestApp::with_merchant(concept).await;
    let mut confirmed = confirmed(
        "R-1",
        "1001",
        &[
            exchanged("L1", 1, "TEE-M", 2500),
            exchanged("L2", 1, "TEE-M", 2500),
            gift_card_unit("L3", 1),
        ],
    );
    confirmed.units[1].concept = None;
    confirmed.units[2].concept = None;
    let body = delivered(&app, &confirmed).await;
    let items = &body["items"];
    assert_eq!(
        (&items[0]["concept"], &items[1]["concept"]),
        (&json!("Acme Sport"), &json!("Acme Home"))
    );
    assert_eq!(items[2]["return_items"][0]["concept"], "Acme Home");
}

#[tokio::test]
async fn a_gift_card_with_bonus_credit() {
    let app = TestApp::start().await;
    let units = [gift_card_unit("L1", 1), gift_card_unit("L1", 2), gift_card_unit("L2", 1)];
    let body = delivered(&app, &confirmed("R-1", "1001", &units)).await;
    let items = body["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    has_exactly(&items[0], &GIFT_CARD);
    let returned = |line: &str, quantity: u8| {
        json!({
            "title": "Shirt", "original_sku": "TEE-XL", "original_item_identifier": line,
            "quantity": quantity, "concept": "Acme Sport",
        })
    };
    assert_eq!(
        items[0],
        json!({
            "sku": "GIFT-CARD", "quantity": 1, "unit_price_amount_cents": 3 * 2450,
            "bonus_credit_amount_cents": 500,
            "return_items": [returned("L1", 2), returned("L2", 1)],
        })
    );
    has_exactly(&items[0]["return_items"][0], &RETURNED);
    assert!(app.journal("/sku/TEE/variants").await.is_empty(), "a card has no stock");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(
        (&shown["stock_check"], &shown["price_check"]),
        (&json!("not_needed"), &json!("not_needed"))
    );
}

#[tokio::test]
async fn an_exchange_and_a_gift_card_are_one_order() {
    let app = TestApp::start().await;
    let units = [exchanged("L1", 1, "TEE-M", 2500), gift_card_unit("L2", 1)];
    let body = delivered(&app, &confirmed("R-1", "1001", &units)).await;
    let items = body["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    has_exactly(&items[0], &EXCHANGE);
    has_exactly(&items[1], &GIFT_CARD);
}

#[tokio::test]
async fn a_gift_order() {
    let app = TestApp::start().await;
    let mut gift = confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)]);
    gift.is_gift = true;
    gift.customer.email = Some("giftee@example.com".to_owned());
    for unit in &mut gift.units {
        (unit.concept, unit.variant_identifier) = (None, None);
    }
    let body = delivered(&app, &gift).await;
    assert_eq!(body["is_gift"], true);
    assert_eq!(body["customer"]["email"], "giftee@example.com");
    has_exactly(&body["items"][0], &EXCHANGE);
    assert_eq!(body["items"][0]["concept"], Value::Null);
}

#[tokio::test]
async fn a_second_return_of_an_order_fails_and_a_repeat_changes_nothing() {
    let app = TestApp::start().await;
    let first = confirmed("R-1", "1001", &[exchanged("L1", 1, "TEE-M", 2500)]);
    let envelope = Envelope::new("rma-engine", Clock::system().now(), &first);
    app.publish(&envelope).await;
    app.placed().await;
    // The same event again, and the same return with another event id.
    app.publish(&envelope).await;
    app.confirm(&first).await;
    let second =
        confirmed("R-2", "1001", &[exchanged("L1", 2, "TEE-M", 2500), gift_card_unit("L2", 1)]);
    app.confirm(&second).await;
    app.confirm(&second).await;
    let failed = app.failed().await;
    assert_eq!((reason(&failed), failed.items.len()), (FailureReason::AlreadyExchanged, 2));
    assert_eq!(
        (failed.rma_identifier.as_str(), failed.original_order_id.as_str()),
        ("R-2", "1001")
    );
    app.wait_until_idle().await;
    assert_eq!(app.journal("/exchange_orders").await.len(), 1);
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!((&shown["state"], &shown["rma_identifier"]), (&json!("placed"), &json!("R-1")));
    assert_eq!(shown["other_returns"][0]["state"], "already_exchanged");
}

#[tokio::test]
async fn an_identifier_is_generated_if_the_merchant_returns_none() {
    let app = TestApp::start().await;
    let computed = json!({"total_amount_cents": 2700, "tax_amount_cents": 200, "id": null});
    let step = json!([{"do": "respond", "body": computed}, {"do": "respond", "body": {"id": 77}}]);
    app.behave("/exchange_orders", step).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    let placed = app.placed().await;
    assert!(placed.exchange_order_identifier.starts_with("X-"), "{placed:?}");
    let (_, shown) = app.get("/v1/exchange_orders/1001", "acme").await;
    assert_eq!(shown["amounts"], json!({"total_amount_cents": 2700, "tax_amount_cents": 200}));
    assert_eq!(shown["exchange_order_identifier"], placed.exchange_order_identifier);
    app.confirm(&confirmed("R-2", "1002", &[gift_card_unit("L1", 1)])).await;
    assert_eq!(app.placed().await.exchange_order_identifier, "77");
    // A 2xx response that is too long to read still places the order.
    app.behave("/exchange_orders", json!([{"do": "huge"}])).await;
    app.confirm(&confirmed("R-3", "1003", &[gift_card_unit("L1", 1)])).await;
    let placed = app.placed().await;
    assert!(placed.exchange_order_identifier.starts_with("X-"), "{placed:?}");
    app.wait_until_idle().await;
}

#[tokio::test]
async fn many_returns_of_one_order_make_one_order() {
    let app = TestApp::start().await;
    for number in 0..60 {
        let rma = format!("R-{}", number % 30);
        app.confirm(&confirmed(&rma, "1001", &[exchanged("L1", 1, "TEE-M", 2500)])).await;
    }
    let winner = app.placed().await.rma_identifier;
    let failed_returns: BTreeSet<_> = app
        .received::<ExchangeFailed>(29)
        .await
        .into_iter()
        .map(|event| event.rma_identifier)
        .collect();
    assert!(failed_returns.len() == 29 && !failed_returns.contains(&winner));
    app.wait_until_idle().await;
    assert_eq!(app.journal("/exchange_orders").await.len(), 1);
    assert_eq!(
        app.count("SELECT count(*) AS n FROM exchange_orders WHERE merchant = 'acme'").await,
        1
    );
}
