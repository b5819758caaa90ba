//! The JSON Schemas of the order message and of the event.
//!
//! The schema of the message accepts what [`OrderMessage::read`] accepts, except for rules that a
//! schema cannot express: unique identifiers, quantities of lines and refunds, sums, the years and
//! leap seconds of times, and times in the future.
//!
//! [`OrderMessage::read`]: super::OrderMessage::read

use std::borrow::Cow;

use serde_json::{Value, json};
use utoipa::openapi::schema::{ArrayBuilder, Object, Schema, SchemaType};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::customer::{CUSTOMER_ALIAS, Customer};
use super::limits::MAX_OPAQUE;
use super::model::Order;
use super::stored::{OrderStored, OrderStoredInBulk};
use crate::event::Event as _;
use crate::schema::json_schema;

/// The message that merchants publish.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub struct ReturnsPortalOrderMessage {
    returns_portal_order: ReturnsPortalOrder,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub struct ReturnsPortalOrder {
    /// Accepted together or not at all.
    #[schema(min_items = 1, max_items = 500)]
    orders: Vec<SentOrder>,
}

/// The schema of an order as merchants send it. It has rules and fields that [`Order`] has not.
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

/// The schema of the message that merchants publish.
pub fn message_schema() -> Value {
    json_schema::<ReturnsPortalOrderMessage>("Returns Portal Order message")
}

/// The schema of the event `order.stored.v1`.
pub fn stored_schema() -> Value {
    json_schema::<OrderStored>(OrderStored::TYPE)
}

/// The schema of the event `order.stored_in_bulk.v1`.
pub fn stored_in_bulk_schema() -> Value {
    json_schema::<OrderStoredInBulk>(OrderStoredInBulk::TYPE)
}

fn as_sent(name: &str, mut schema: RefOr<Schema>) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(part)) = &mut schema {
        match name {
            "Order" => {
                either_customer(part);
                add_opaque_array(part, "transactions");
                add_opaque_array(part, "discounts");
            }
            "OrderLine" => add_keyword(part, "anyOf", json!([not_empty("sku"), not_empty("upc")])),
            "Customer" => {
                add_keyword(part, "anyOf", json!([not_empty("identifier"), not_empty("email")]))
            }
            "OrderStatus" => part.enum_values.get_or_insert_default().push(json!("Canceled")),
            _ => {}
        }
    }
    schema
}

/// Requires the shopper under one of two keys. The other key is absent or null.
fn either_customer(order: &mut Object) {
    let customer = Ref::from_schema_name(Customer::name());
    let only = |key: &str, other: &str| json!({ "required": [key], "properties": { key: customer, other: { "type": "null" } } });
    order.properties.remove("customer");
    order.required.retain(|key| key != "customer");
    let either = json!([only("customer", CUSTOMER_ALIAS), only(CUSTOMER_ALIAS, "customer")]);
    add_keyword(order, "oneOf", either);
}

/// Requires an array of any values.
fn add_opaque_array(order: &mut Object, key: &str) {
    let anything = Object::with_type(SchemaType::AnyValue);
    let array = ArrayBuilder::new().items(anything).max_items(Some(MAX_OPAQUE));
    order.properties.insert(key.to_owned(), array.into());
    order.required.push(key.to_owned());
}

/// Adds a keyword that `utoipa` has no field for.
fn add_keyword(part: &mut Object, keyword: &str, rule: Value) {
    part.extensions.get_or_insert_default().insert(keyword.to_owned(), rule);
}

fn not_empty(key: &str) -> Value {
    json!({ "required": [key], "properties": { key: { "type": "string", "minLength": 1 } } })
}
