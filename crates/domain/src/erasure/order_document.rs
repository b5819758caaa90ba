//! Erasure in the document of an order, which also has fields that only the merchant knows.

use serde_json::{Map, Value};

use super::rules::{ERASED, erase};
use crate::order::{CUSTOMER_ALIAS, Order};

/// The fields of an order that are known and therefore stay, personal ones with their data replaced.
const ORDER: [&str; 23] = [
    "identifier",
    "raw_status",
    "status",
    "total_amount_cents",
    "product_amount_cents",
    "tax_amount_cents",
    "discount_amount_cents",
    "shipping_amount_cents",
    "shipping_tax_amount_cents",
    "currency",
    "tags",
    "concept",
    "note",
    "created_at",
    "updated_at",
    "items",
    "customer",
    CUSTOMER_ALIAS,
    "shipping_address",
    "billing_address",
    "refunds",
    "transactions",
    "discounts",
];
const LINE: [&str; 20] = [
    "identifier",
    "sku",
    "upc",
    "quantity",
    "quantity_shipped",
    "quantity_canceled",
    "tracking_number",
    "shipped_date",
    "delivered_date",
    "product_identifier",
    "variant_identifier",
    "title",
    "tags",
    "product_amount_cents",
    "tax_amount_cents",
    "discount_amount_cents",
    "unit_price_amount_cents",
    "image_url",
    "weight",
    "concept",
];
const REFUND: [&str; 7] = [
    "identifier",
    "total_refund_amount_cents",
    "refund_line_items",
    "note",
    "created_at",
    "rma_identifier",
    "tags",
];
const REFUND_LINE: [&str; 3] = ["identifier", "quantity", "order_item_identifier"];
/// Texts of transactions and discounts that stay.
const REFERENCES: [&str; 8] =
    ["identifier", "id", "type", "kind", "code", "currency", "status", "created_at"];

/// Replaces the personal data in the document of an order. Unknown fields are removed, because they may be
/// about the shopper. Transactions and discounts keep their numbers and references.
pub fn erase_order_document(document: &mut Value) {
    erase(document);
    let Value::Object(order) = document else { return };
    retain(order, &ORDER);
    for line in objects(order, "items") {
        retain(line, &LINE);
    }
    for refund in objects(order, "refunds") {
        retain(refund, &REFUND);
        for line in objects(refund, "refund_line_items") {
            retain(line, &REFUND_LINE);
        }
    }
    for key in ["transactions", "discounts"] {
        order.get_mut(key).into_iter().for_each(erase_texts);
    }
}

/// An order without personal data.
pub fn erase_order(order: &Order) -> serde_json::Result<Order> {
    let mut document = serde_json::to_value(order)?;
    erase(&mut document);
    serde_json::from_value(document)
}

fn retain(object: &mut Map<String, Value>, known: &[&str]) {
    object.retain(|key, _| known.contains(&key.as_str()));
}

fn objects<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> + use<'a> {
    let elements = object.get_mut(key).and_then(Value::as_array_mut);
    elements.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Replaces all texts but references.
fn erase_texts(value: &mut Value) {
    match value {
        Value::String(text) => ERASED.clone_into(text),
        Value::Array(elements) => elements.iter_mut().for_each(erase_texts),
        Value::Object(members) => {
            for (key, member) in members {
                let is_reference = REFERENCES.contains(&key.as_str());
                let is_kept = |text: &str| is_reference && !text.contains('@');
                if !member.as_str().is_some_and(is_kept) {
                    erase_texts(member);
                }
            }
        }
        _ => {}
    }
}
