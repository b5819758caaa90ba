//! The contract as tables: the required and optional fields of each object, and invalid values of
//! each field.

use serde_json::{Value, json};

use crate::json::Code;

#[derive(Clone, Copy)]
pub(super) enum FieldType {
    /// A string with a minimum and a maximum length.
    Text(usize, usize),
    Integer(i64, i64),
    Number,
    Status,
    Country,
    Currency,
    Time,
    Tags,
    Array {
        may_be_empty: bool,
        max: usize,
    },
    Object,
}

use FieldType::{Array, Country, Currency, Integer, Number, Object, Status, Tags, Text, Time};

const ID: FieldType = Text(1, 255);
const AMOUNT: FieldType = Integer(0, 1_000_000_000_000_000);
const OPAQUE: FieldType = Array { may_be_empty: true, max: 1000 };

pub(super) struct Fields {
    pub(super) required: &'static [(&'static str, FieldType)],
    pub(super) optional: &'static [(&'static str, FieldType)],
}

pub(super) const ORDER: Fields = Fields {
    required: &[
        ("identifier", ID),
        ("status", Status),
        ("total_amount_cents", AMOUNT),
        ("product_amount_cents", AMOUNT),
        ("tax_amount_cents", AMOUNT),
        ("discount_amount_cents", AMOUNT),
        ("shipping_amount_cents", AMOUNT),
        ("shipping_tax_amount_cents", AMOUNT),
        ("currency", Currency),
        ("created_at", Time),
        ("updated_at", Time),
        ("items", Array { may_be_empty: false, max: 1000 }),
        ("shipping_address", Object),
        ("billing_address", Object),
        ("transactions", OPAQUE),
        ("refunds", OPAQUE),
        ("discounts", OPAQUE),
    ],
    optional: &[
        ("raw_status", Text(0, 255)),
        ("concept", Text(0, 255)),
        ("note", Text(0, 5000)),
        ("tags", Tags),
    ],
};

pub(super) const LINE: Fields = Fields {
    required: &[
        ("identifier", ID),
        ("quantity", Integer(1, 1000)),
        ("quantity_shipped", Integer(0, 1000)),
        ("quantity_canceled", Integer(0, 1000)),
        ("title", Text(1, 1000)),
        ("product_amount_cents", AMOUNT),
        ("tax_amount_cents", AMOUNT),
        ("discount_amount_cents", AMOUNT),
        ("unit_price_amount_cents", AMOUNT),
    ],
    optional: &[
        ("sku", Text(0, 255)),
        ("upc", Text(0, 255)),
        ("tracking_number", Text(0, 255)),
        ("shipped_date", Time),
        ("product_identifier", Text(0, 255)),
        ("variant_identifier", Text(0, 255)),
        ("tags", Tags),
        ("image_url", Text(0, 2048)),
        ("weight", Number),
    ],
};

pub(super) const CUSTOMER: Fields = Fields {
    required: &[],
    optional: &[
        ("identifier", Text(0, 255)),
        ("first_name", Text(0, 255)),
        ("last_name", Text(0, 255)),
        ("email", Text(0, 255)),
        ("phone", Text(0, 64)),
    ],
};

pub(super) const ADDRESS: Fields = Fields {
    required: &[
        ("name", Text(1, 255)),
        ("street1", Text(1, 255)),
        ("city", Text(1, 255)),
        ("country_code", Country),
    ],
    optional: &[
        ("street2", Text(0, 255)),
        ("state", Text(0, 255)),
        ("zip_code", Text(0, 32)),
        ("phone", Text(0, 64)),
    ],
};

pub(super) const REFUND: Fields = Fields {
    required: &[
        ("identifier", ID),
        ("total_refund_amount_cents", AMOUNT),
        ("refund_line_items", OPAQUE),
        ("created_at", Time),
    ],
    optional: &[("note", Text(0, 5000)), ("rma_identifier", Text(0, 255)), ("tags", Tags)],
};

pub(super) const REFUND_LINE: Fields = Fields {
    required: &[("identifier", ID), ("quantity", Integer(1, 1000)), ("order_item_identifier", ID)],
    optional: &[],
};

impl FieldType {
    pub(super) fn invalid_values(self) -> Vec<(Value, Code)> {
        let invalid = |value: Value| (value, Code::Invalid);
        let mut values = match self {
            Text(min, max) => {
                let mut values = vec![invalid(json!("ß".repeat(max + 1))), invalid(json!("a\0b"))];
                values.extend((min > 0).then(|| invalid(json!(""))));
                values
            }
            Integer(min, max) => vec![
                invalid(json!(min - 1)),
                invalid(json!(max + 1)),
                invalid(json!(u64::MAX)),
                (json!(1.5), Code::InvalidType),
                (json!("1"), Code::InvalidType),
            ],
            Number => vec![invalid(json!(-0.5)), (json!("1"), Code::InvalidType)],
            Status => vec![invalid(json!("shipped")), invalid(json!(""))],
            Country => vec![invalid(json!("U")), invalid(json!("U5")), invalid(json!("USAA"))],
            Currency => vec![invalid(json!("usd")), invalid(json!("QQQ"))],
            Time => vec![
                invalid(json!("yesterday")),
                invalid(json!("2026-01-01T00:00:00")),
                invalid(json!("2026-13-01T00:00:00Z")),
                invalid(json!("2026-01-01 00:00:00Z")),
                invalid(json!("2026-01-01T00:00:60Z")),
                invalid(json!("2026-01-01T00:00:00\u{2212}01:00")),
            ],
            Tags => vec![invalid(json!(vec!["tag"; 251])), (json!("tag"), Code::InvalidType)],
            Array { may_be_empty, max } => {
                let mut values = vec![invalid(json!(vec![json!({}); max + 1]))];
                values.extend((!may_be_empty).then(|| invalid(json!([]))));
                values
            }
            Object => vec![(json!("an object"), Code::InvalidType)],
        };
        values.push((json!(true), Code::InvalidType));
        values
            .push((if matches!(self, Object) { json!([]) } else { json!({}) }, Code::InvalidType));
        values
    }
}
