//! The Returns Portal Order: what a merchant publishes, what makes it acceptable, and what
//! becomes of it next to what is already stored.
//!
//! [`OrderMessage::read`] checks a message by itself and finds every fault of every order in it;
//! [`OrderSnapshot::decide`] then holds one order against what is known of it. An [`Order`] that came
//! out of `read` keeps every rule of this module: amounts are not negative and small enough that
//! no sum of them overflows, lines have distinct identifiers, a refund names lines of its own
//! order and never more units than they have. Only sums that do not add up may remain, as
//! warnings, because senders differ in how they round and what they include.
//!
//! What a merchant sends beyond these fields is not here: whoever stores an order stores the
//! document it came in. Nor are its transactions and discounts, which are only counted: nobody
//! reads them, and they could be much longer in an event than in the message.

mod address;
mod customer;
mod line;
mod message;
mod outcome;
mod refund;
pub mod sample;
mod schema;
mod stored;

pub use address::Address;
pub use customer::{CUSTOMER_ALIAS, Customer};
pub use line::{MAX_LINES, MAX_ORDER_UNITS, OrderLine};
pub use message::{MAX_ORDERS, OrderMessage, OrderPolicy, OrderSnapshot};
pub use outcome::{KnownOrder, KnownRefund, OrderOutcome};
pub use refund::{IGNORE_REFUND, Refund, RefundLine};
pub use schema::{ReturnsPortalOrder, ReturnsPortalOrderMessage, message_schema, stored_schema};
pub use stored::OrderStored;

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use iso_currency::Currency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};

use crate::json::{Field, Object, array, currency, integer, object, one_of, text, timestamp};
use message::Sums;
use refund::RefundIndex;

/// The length of an identifier, in characters.
const IDENTIFIER: RangeInclusive<usize> = 1..=255;
/// The length of an optional word: senders write an empty string for "none".
const WORD: RangeInclusive<usize> = 0..=255;
/// Ten trillion of the major unit: a thousand lines of it still fit into 64 bits.
const AMOUNT: RangeInclusive<i64> = 0..=1_000_000_000_000_000;
const MAX_TAGS: usize = 250;
const MAX_NOTE: usize = 5_000;
const MAX_REFUNDS: usize = 1_000;
const MAX_OPAQUE: usize = 1_000;

/// One order as its merchant sees it at `updated_at`, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Order {
    /// The order's identifier in the merchant's own systems.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    /// The order's status in the merchant's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub raw_status: Option<String>,
    pub status: OrderStatus,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub total_amount_cents: i64,
    /// The sum of the lines' `product_amount_cents`.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub product_amount_cents: i64,
    /// The sum of the lines' `tax_amount_cents`.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub tax_amount_cents: i64,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub discount_amount_cents: i64,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_amount_cents: i64,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_tax_amount_cents: i64,
    #[schema(schema_with = currency_schema)]
    pub currency: Currency,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, schema_with = tags_schema)]
    pub tags: Vec<String>,
    /// The brand of the merchant that sold the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub concept: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5000)]
    pub note: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The quantities of all lines sum to 10,000 at most.
    #[schema(min_items = 1, max_items = 1000)]
    pub items: Vec<OrderLine>,
    pub customer: Customer,
    pub shipping_address: Address,
    pub billing_address: Address,
    #[schema(max_items = 1000)]
    pub refunds: Vec<Refund>,
}

/// Where an order stands. `Shipped` once all of it has shipped, also after a full refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum OrderStatus {
    Created,
    Shipped,
    #[serde(alias = "Canceled")]
    Cancelled,
}

impl OrderStatus {
    const WORDS: [(&str, Self); 4] = [
        ("Created", Self::Created),
        ("Shipped", Self::Shipped),
        ("Cancelled", Self::Cancelled),
        ("Canceled", Self::Cancelled),
    ];
}

impl Order {
    fn read(order: &Object<'_>, sums: &mut Sums) -> Option<Self> {
        let mut seen = RefundIndex::default();

        let identifier = order.required("identifier", text(IDENTIFIER));
        let raw_status = order.optional("raw_status", text(WORD));
        let status = order.required("status", one_of(&OrderStatus::WORDS));
        let total = order.required("total_amount_cents", integer(AMOUNT));
        let product = order.required("product_amount_cents", integer(AMOUNT));
        let tax = order.required("tax_amount_cents", integer(AMOUNT));
        let discount = order.required("discount_amount_cents", integer(AMOUNT));
        let shipping = order.required("shipping_amount_cents", integer(AMOUNT));
        let shipping_tax = order.required("shipping_tax_amount_cents", integer(AMOUNT));
        let currency = order.required("currency", currency);
        let tags = order.optional("tags", array(0..=MAX_TAGS, text(WORD)));
        let concept = order.optional("concept", text(WORD));
        let note = order.optional("note", text(0..=MAX_NOTE));
        let created_at = order.required("created_at", timestamp);
        let updated_at = order.required("updated_at", timestamp);
        let (items, lines) = line::read_all(order, sums);
        let customer = customer::read_either(order);
        let shipping_address = order.required("shipping_address", object(Address::read));
        let billing_address = order.required("billing_address", object(Address::read));
        let transactions = order.required("transactions", array(0..=MAX_OPAQUE, unread));
        let refunds = array(0..=MAX_REFUNDS, object(|it| Refund::read(it, &lines, &mut seen)));
        let refunds = order.required("refunds", refunds);
        let discounts = order.required("discounts", array(0..=MAX_OPAQUE, unread));

        sums.compare(order, "product_amount_cents", product, lines.product_amount());
        sums.compare(order, "tax_amount_cents", tax, lines.tax_amount());

        transactions.and(discounts)?;
        Some(Self {
            identifier: identifier?,
            raw_status: raw_status?,
            status: status?,
            total_amount_cents: total?,
            product_amount_cents: product?,
            tax_amount_cents: tax?,
            discount_amount_cents: discount?,
            shipping_amount_cents: shipping?,
            shipping_tax_amount_cents: shipping_tax?,
            currency: currency?,
            tags: tags?.unwrap_or_default(),
            concept: concept?,
            note: note?,
            created_at: created_at?,
            updated_at: updated_at?,
            items: items?,
            customer: customer?,
            shipping_address: shipping_address?,
            billing_address: billing_address?,
            refunds: refunds?,
        })
    }
}

/// Anything, and nothing is made of it.
fn unread(_: Field<'_>) -> Option<()> {
    Some(())
}

/// Every code there is: the schema accepts what [`currency`] accepts.
fn currency_schema() -> ObjectBuilder {
    let codes = letters().flat_map(|a| letters().map(move |b| (a, b)));
    let codes = codes.flat_map(|(a, b)| letters().map(move |c| String::from_iter([a, b, c])));
    let codes = codes.filter(|code| Currency::from_code(code).is_some());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("ISO 4217 code"))
        .enum_values(Some(codes))
}

fn tags_schema() -> ArrayBuilder {
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(ObjectBuilder::new().schema_type(Type::String).max_length(Some(*WORD.end())))
        .max_items(Some(MAX_TAGS))
}

fn letters() -> impl Iterator<Item = char> {
    'A'..='Z'
}

#[cfg(test)]
mod tests;
