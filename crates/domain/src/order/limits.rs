//! The limits of an order's fields. The `#[schema]` attributes repeat them, because those accept
//! only literals; the schema tests compare both.

use std::ops::RangeInclusive;

use chrono::TimeDelta;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};

/// The length of an identifier, in characters.
pub(super) const IDENTIFIER: RangeInclusive<usize> = 1..=255;
/// The length of an optional text. Some senders write an empty string for an absent text.
pub(super) const OPTIONAL_TEXT: RangeInclusive<usize> = 0..=255;
/// Up to ten trillion of the major currency unit. The sum of a thousand such amounts fits into 64
/// bits.
pub(super) const AMOUNT: RangeInclusive<i64> = 0..=1_000_000_000_000_000;
/// The units of one line.
pub(super) const QUANTITY: RangeInclusive<i64> = 1..=1_000;
/// How far `updated_at` can be ahead of our clock.
pub(super) const MAX_AHEAD: TimeDelta = TimeDelta::hours(24);
pub(super) const MAX_TAGS: usize = 250;
pub(super) const MAX_NOTE: usize = 5_000;
pub(super) const MAX_REFUNDS: usize = 1_000;
/// The maximum number of transactions or discounts.
pub(super) const MAX_OPAQUE: usize = 1_000;
/// The maximum number of lines of an order.
pub const MAX_LINES: usize = 1_000;
/// The maximum number of units of an order. Each unit is stored on its own.
pub const MAX_ORDER_UNITS: i64 = 10_000;
/// The maximum number of orders of a message.
pub const MAX_ORDERS: usize = 500;

pub(super) fn tags_schema() -> ArrayBuilder {
    let tag = ObjectBuilder::new().schema_type(Type::String).max_length(Some(*OPTIONAL_TEXT.end()));
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]))
        .items(tag)
        .max_items(Some(MAX_TAGS))
}
