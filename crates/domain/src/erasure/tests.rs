use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::*;
use crate::event::Event as _;
use crate::exchange::ExchangeOrder;
use crate::json::Document;
use crate::order::{Order, OrderMessage, OrderPolicy};
use crate::schema::json_schema;

/// A text that must not remain.
const MARKER: &str = "PLANTED";

fn address() -> Value {
    json!({
        "name": "PLANTED Adler", "street1": "1 PLANTED Street", "street2": "PLANTED", "city": "PLANTED",
        "state": "PLANTED", "zip_code": "PLANTED", "country_code": "US", "phone": "PLANTED",
        "door": "PLANTED",
    })
}

/// An order with a marker in every personal field and in fields that only the merchant knows.
fn order() -> Value {
    json!({
        "identifier": "1001", "status": "Shipped", "currency": "USD", "note": "call PLANTED",
        "total_amount_cents": 1010, "product_amount_cents": 1000, "tax_amount_cents": 10,
        "discount_amount_cents": 0, "shipping_amount_cents": 0, "shipping_tax_amount_cents": 0,
        "created_at": "2026-01-01T10:00:00Z", "updated_at": "2026-01-02T10:00:00Z",
        "items": [{
            "identifier": "L1", "sku": "SHIRT", "title": "Shirt", "quantity": 1,
            "quantity_shipped": 1, "quantity_canceled": 0, "product_amount_cents": 1000,
            "tax_amount_cents": 10, "discount_amount_cents": 0, "unit_price_amount_cents": 1000,
            "engraving": "for PLANTED",
        }],
        "customer": {
            "identifier": "planted@mail.example", "email": "PLANTED@mail.example", "phone": "PLANTED",
            "first_name": "PLANTED", "last_name": "PLANTED", "born": 1980, "aliases": ["PLANTED"],
        },
        "shipping_address": address(), "billing_address": address(),
        "transactions": [{ "identifier": "T-1", "amount_cents": 1010, "card_holder": "PLANTED" }],
        "discounts": [{ "code": "SPRING", "amount_cents": 0, "given_to": { "name": "PLANTED" } }],
        "refunds": [{
            "identifier": "R1", "total_refund_amount_cents": 500, "note": "PLANTED called",
            "created_at": "2026-01-02T09:00:00Z",
            "refund_line_items": [{ "identifier": "R1-1", "quantity": 1, "order_item_identifier": "L1" }],
        }],
        "gift": { "message": "PLANTED" },
    })
}

fn read(order: &Value) -> Order {
    let message = json!({ "returns_portal_order": { "orders": [order] } });
    let document = Document::parse(message.to_string().as_bytes()).unwrap();
    let now: DateTime<Utc> = "2026-03-01T00:00:00Z".parse().unwrap();
    let message = OrderMessage::read(&document, OrderPolicy::default(), now).unwrap();
    message.snapshots.into_iter().next().unwrap().order
}

#[track_caller]
fn check_no_marker(value: &Value) {
    let text = value.to_string().to_uppercase();
    assert!(!text.contains(MARKER), "{value:#}");
}

#[test]
fn an_erased_document_is_a_valid_order_with_the_same_amounts_and_identifiers() {
    let before = order();
    let mut after = before.clone();
    erase_order_document(&mut after);
    check_no_marker(&after);
    let known = read(&before);
    let erased = read(&after);
    assert_eq!(erased.customer.email.as_deref(), Some(ERASED_EMAIL));
    assert_eq!(erased.customer.identifier, ERASED_EMAIL);
    assert_eq!(erased.shipping_address.country_code, "US");
    assert_eq!(
        (&erased.items, erased.total_amount_cents),
        (&known.items, known.total_amount_cents)
    );
    assert_eq!(
        after["transactions"],
        json!([{
            "identifier": "T-1", "amount_cents": 1010, "card_holder": ERASED,
        }])
    );
    let once = after.clone();
    erase_order_document(&mut after);
    assert_eq!(after, once, "a second time changes nothing");
}

#[test]
fn a_read_order_can_be_erased() {
    let erased = erase_order(&read(&order())).unwrap();
    check_no_marker(&json!(erased));
    assert_eq!(erased.identifier, "1001");
}

/// Every field of the type stays in the document.
#[test]
fn known_fields_are_not_removed() {
    let mut document = json!(read(&order()));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let before = document.clone();
    erase_order_document(&mut document);
    assert_eq!(keys(&document), keys(&before));
    assert_eq!(keys(&document["items"][0]), keys(&before["items"][0]));
    assert_eq!(keys(&document["refunds"][0]), keys(&before["refunds"][0]));
}

#[test]
fn an_exchange_order_stays_readable() {
    let order = read(&order());
    let mut message = json!({
        "original_order_id": "1001", "rma_identifier": "RMA-1", "currency": "USD", "is_gift": false,
        "items": [], "customer": order.customer, "payment": { "transaction_id": uuid::Uuid::nil() },
        "shipping_address": order.shipping_address, "billing_address": order.billing_address,
    });
    erase(&mut message);
    check_no_marker(&message);
    assert_eq!(serde_json::from_value::<ExchangeOrder>(message).unwrap().rma_identifier, "RMA-1");
}

#[test]
fn warehouse_messages_lose_addresses_and_comments() {
    let mut message = json!({ "order": {
        "id": 7, "client_identifier": "1001", "comments": "PLANTED",
        "shipping_address": {
            "id": 9, "name": "PLANTED", "company": "PLANTED", "telephone_number": "PLANTED",
            "street": "PLANTED", "zip_code": "PLANTED", "country": "USA",
            "created_at": "2026-01-01T10:00:00Z",
        },
        "reject_reason": "PLANTED moved", "order_items": [{ "id": 1, "comments": "PLANTED" }],
    }});
    erase(&mut message);
    check_no_marker(&message);
    let address = &message["order"]["shipping_address"];
    let kept = (&address["id"], &address["country"], &address["created_at"]);
    assert_eq!(kept, (&json!(9), &json!("USA"), &json!("2026-01-01T10:00:00Z")));
}

#[test]
fn attributes_of_products_and_names_of_lists_stay() {
    let before = json!({ "attributes": [{ "name": "size", "value": "M" }], "state": "placed" });
    let mut after = before.clone();
    erase(&mut after);
    assert_eq!(after, before);
}

#[test]
fn the_person_of_a_withdrawal_is_erased_and_the_switch_stays() {
    let mut value = json!({
        "withdrawal": { "name": "PLANTED", "email": "planted@mail.example" },
        "appearance": { "withdrawal": true },
    });
    erase(&mut value);
    assert_eq!(value["withdrawal"], json!({ "name": ERASED, "email": ERASED_EMAIL }));
    assert_eq!(value["appearance"]["withdrawal"], true);
}

#[test]
fn a_mail_loses_its_recipient_and_its_texts() {
    let mut mail = json!({
        "to": "planted@mail.example", "reply_to": "returns@acme.example", "from_name": "Acme",
        "subject": "PLANTED", "text": "PLANTED", "html": "<p>PLANTED</p>",
    });
    erase_mail(&mut mail);
    let erased = json!({
        "to": ERASED_EMAIL, "reply_to": "returns@acme.example", "from_name": "Acme",
        "subject": ERASED, "text": ERASED, "html": ERASED,
    });
    assert_eq!(mail, erased);
}

#[test]
fn a_history_loses_remarks() {
    let mut entry =
        json!({ "reason": "PLANTED rang", "detail": "with neighbour PLANTED", "units": 2 });
    erase_history(&mut entry);
    assert_eq!(entry, json!({ "reason": ERASED, "detail": ERASED, "units": 2 }));
}

#[test]
fn a_report_of_a_warehouse_loses_the_reason_of_a_return_and_a_return_keeps_its_code() {
    let receipt = json!({ "return_reason": "PLANTED gained weight", "sku": "TENT" });
    let mut report = receipt.clone();
    erase_report(&mut report);
    assert_eq!(report, json!({ "return_reason": ERASED, "sku": "TENT" }));
    let mut unit = json!({ "return_reason": "TOO_SMALL" });
    erase(&mut unit);
    assert_eq!(unit["return_reason"], "TOO_SMALL");
}

#[test]
fn only_reports_about_the_shopper_are_named() {
    let names = HashSet::from(["1001", "7"]);
    for named in [
        json!({ "reference": { "identifier": "1001" } }),
        json!({ "reference": { "identifier": 7 } }),
        json!({ "reference": { "alternate_identifier": "7" } }),
        json!({ "shipment_identifier": "1001" }),
    ] {
        assert!(is_report_about(&named, &names), "{named}");
    }
    assert!(!is_report_about(&json!({ "reference": { "identifier": "2" } }), &names));
}

#[test]
fn an_email_is_found_by_its_digest() {
    let email = EmailDigest::of(" Ada@Mail.example");
    assert_eq!(email, EmailDigest::of("ada@mail.example"));
    let mut value = json!({ "giftee_email": "ADA@mail.example", "by": ["bo@mail.example"] });
    erase_email(&mut value, &email);
    assert_eq!(value, json!({ "giftee_email": ERASED_EMAIL, "by": ["bo@mail.example"] }));
}

#[test]
fn a_text_without_personal_data_stays_as_it_is() {
    assert_eq!(erase_text(r#"{"b": 1.50, "a": 2}"#, erase), None);
    assert_eq!(erase_text(r#"{"note":"x"}"#, erase).as_deref(), Some(r#"{"note":"erased"}"#));
    assert_eq!(erase_text("no JSON", erase).as_deref(), Some(ERASED));
    assert_eq!(erase_text(ERASED, erase), None);
    assert_eq!(erase_text("", erase), None);
}

fn pretty(schema: &Value) -> String {
    format!("{schema:#}\n")
}

#[test]
fn the_event_schemas_are_up_to_date() {
    let schemas = [
        ("shopper-erased", json_schema::<ShopperErased>(ShopperErased::TYPE)),
        ("returns-erased", json_schema::<ReturnsErased>(ReturnsErased::TYPE)),
        ("shopper-erasure_confirmed", json_schema::<ErasureConfirmed>(ErasureConfirmed::TYPE)),
    ];
    for (name, schema) in schemas {
        let file = format!("../../../../proto-schemas/events/{name}.schema.json");
        expect_test::expect_file![file].assert_eq(&pretty(&schema));
    }
}

#[test]
fn the_personal_values_of_a_document_are_those_that_an_erasure_replaces() {
    let document = json!({
        "customer": { "identifier": "C-1", "email": "a@mail.example", "a/b": ["x", { "name": "Ada" }] },
        "return_reason": "TOO_SMALL", "total_amount_cents": 5, "note": null, "label": { "url": "https://l" },
    });
    let found = personal_values(&document, erase);
    let found: Vec<_> = found.iter().map(|(path, value)| format!("{path} {value}")).collect();
    let expected = [
        r#"/customer/a~1b/0 "x""#,
        r#"/customer/a~1b/1/name "Ada""#,
        r#"/customer/email "a@mail.example""#,
        r#"/label/url "https://l""#,
    ];
    assert_eq!(found, expected);
    let found = personal_values(&document, erase_report);
    assert!(found.iter().any(|(path, _)| path == "/return_reason"), "{found:?}");
}

/// Whether a schema has a property that an erasure replaces, at any depth.
fn has_personal_property(schema: &Value) -> bool {
    match schema {
        Value::Array(elements) => elements.iter().any(has_personal_property),
        Value::Object(members) => members.iter().any(|(key, member)| {
            let properties = member.as_object().filter(|_| key == "properties");
            let mut names = properties.into_iter().flat_map(|it| it.keys());
            let is_personal = |name: &String| {
                let value = json!({ name.as_str(): "text" });
                let person = json!({ name.as_str(): { "x": "text" } });
                !personal_values(&value, erase_report).is_empty()
                    || !personal_values(&person, erase_report).is_empty()
            };
            names.any(is_personal) || has_personal_property(member)
        }),
        _ => false,
    }
}

/// Consumers remove these events from their dead-letter queues when the shopper is erased. Other events name no
/// shopper: the contacts in two of them are the merchant's.
#[test]
fn four_events_have_personal_data() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto-schemas/events");
    let mut personal = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let schema = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_of_merchant =
            ["merchant-changed", "delivery-dead"].iter().any(|it| name.starts_with(it));
        if !is_of_merchant && has_personal_property(&schema) {
            personal.push(name.replace(".schema.json", ""));
        }
    }
    personal.sort();
    let expected = ["order-stored", "order-stored_in_bulk", "return-confirmed", "unit-received"];
    assert_eq!(personal, expected);
}
