//! The contract as data. The schema of the message says what [`Message::read`] refuses, as far as
//! a schema can: not that identifiers are unique, that units and refunds fit their line, or
//! that sums add up.
//!
//! [`Message::read`]: super::Message::read

use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{CUSTOMER_ALIAS, Order, OrderStored};
use crate::event::Event as _;
use crate::schema::json_schema;

/// A Returns Portal Order message as it is sent.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the message is read field by field; this is its schema")]
pub struct ReturnsPortalOrderMessage {
    returns_portal_order: ReturnsPortalOrder,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "the message is read field by field; this is its schema")]
pub struct ReturnsPortalOrder {
    /// Accepted together or not at all.
    #[schema(min_items = 1, max_items = 500)]
    orders: Vec<Order>,
}

/// What merchants send.
pub fn message_schema() -> Value {
    let mut schema = json_schema::<ReturnsPortalOrderMessage>("Returns Portal Order message");
    if let Some(order) = schema.pointer_mut("/$defs/Order") {
        either_customer(order);
    }
    if let Some(line) = schema.pointer_mut("/$defs/Line") {
        line["anyOf"] = json!([not_empty("sku"), not_empty("upc")]);
    }
    if let Some(customer) = schema.pointer_mut("/$defs/Customer") {
        customer["anyOf"] = json!([not_empty("identifier"), not_empty("email")]);
    }
    if let Some(Value::Array(words)) = schema.pointer_mut("/$defs/Status/enum") {
        words.push(json!("Canceled"));
    }
    schema
}

/// What others hear when an order was stored.
pub fn stored_schema() -> Value {
    json_schema::<OrderStored>(OrderStored::TYPE)
}

/// The shopper stands under one of two keys, and the other is absent or null.
fn either_customer(order: &mut Value) {
    let only = |key: &str, other: &str| {
        json!({
            "required": [key],
            "properties": { key: { "$ref": "#/$defs/Customer" }, other: { "type": "null" } },
        })
    };
    order["oneOf"] = json!([only("customer", CUSTOMER_ALIAS), only(CUSTOMER_ALIAS, "customer")]);
    if let Some(Value::Object(properties)) = order.get_mut("properties") {
        properties.remove("customer");
    }
    if let Some(Value::Array(required)) = order.get_mut("required") {
        required.retain(|key| key != "customer");
    }
}

fn not_empty(key: &str) -> Value {
    json!({ "required": [key], "properties": { key: { "type": "string", "minLength": 1 } } })
}
