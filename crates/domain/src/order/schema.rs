//! The contract as data. The schema of the message says what [`OrderMessage::read`] refuses, as far as
//! a schema can: not that identifiers are unique, that units and refunds fit their line, that sums
//! add up, or that times lie in the years 1 to 9999 and in no leap second.
//!
//! [`OrderMessage::read`]: super::Message::read

use std::borrow::Cow;

use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, Object, Schema, SchemaType};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::{CUSTOMER_ALIAS, Customer, MAX_OPAQUE, Order, OrderStored};
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
    orders: Vec<SentOrder>,
}

/// An order as merchants may write it, which says more than the types that are made of it.
struct SentOrder;

impl PartialSchema for SentOrder {
    fn schema() -> RefOr<Schema> {
        as_sent(&Order::name(), Order::schema())
    }
}

impl ToSchema for SentOrder {
    fn name() -> Cow<'static, str> {
        Order::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let mut parts = Vec::new();
        Order::schemas(&mut parts);
        schemas.extend(parts.into_iter().map(|(name, part)| {
            let part = as_sent(&name, part);
            (name, part)
        }));
    }
}

/// What merchants send.
pub fn message_schema() -> Value {
    json_schema::<ReturnsPortalOrderMessage>("Returns Portal Order message")
}

/// What others hear when an order was stored.
pub fn stored_schema() -> Value {
    json_schema::<OrderStored>(OrderStored::TYPE)
}

fn as_sent(name: &str, mut schema: RefOr<Schema>) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(part)) = &mut schema {
        match name {
            "Order" => {
                either_customer(part);
                unread(part, "transactions");
                unread(part, "discounts");
            }
            "OrderLine" => add(part, "anyOf", json!([not_empty("sku"), not_empty("upc")])),
            "Customer" => add(part, "anyOf", json!([not_empty("identifier"), not_empty("email")])),
            "OrderStatus" => part.enum_values.get_or_insert_default().push(json!("Canceled")),
            _ => {}
        }
    }
    schema
}

/// The shopper stands under one of two keys, and the other is absent or null.
fn either_customer(order: &mut Object) {
    let customer = Ref::from_schema_name(Customer::name());
    let only = |key: &str, other: &str| json!({ "required": [key], "properties": { key: customer, other: { "type": "null" } } });
    order.properties.remove("customer");
    order.required.retain(|key| key != "customer");
    let either = json!([only("customer", CUSTOMER_ALIAS), only(CUSTOMER_ALIAS, "customer")]);
    add(order, "oneOf", either);
}

/// An array that must be there and of which nothing is kept.
fn unread(order: &mut Object, key: &str) {
    let anything = Object::with_type(SchemaType::AnyValue);
    let array = ArrayBuilder::new().items(anything).max_items(Some(MAX_OPAQUE));
    order.properties.insert(key.to_owned(), array.into());
    order.required.push(key.to_owned());
}

/// Adds a rule that the type has no field for.
fn add(part: &mut Object, keyword: &str, rule: Value) {
    part.extensions.get_or_insert_default().insert(keyword.to_owned(), rule);
}

fn not_empty(key: &str) -> Value {
    json!({ "required": [key], "properties": { key: { "type": "string", "minLength": 1 } } })
}
