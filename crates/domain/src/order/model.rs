//! An order snapshot and its reader.

use chrono::{DateTime, Utc};
use iso_currency::Currency;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::address::Address;
use super::customer::{self, Customer};
use super::limits::{
    AMOUNT, IDENTIFIER, MAX_AHEAD, MAX_NOTE, MAX_OPAQUE, MAX_REFUNDS, MAX_TAGS, OPTIONAL_TEXT,
    tags_schema,
};
use super::line::{self, OrderLine};
use super::line_index::LineIndex;
use super::read_refund::RefundIndex;
use super::refund::Refund;
use super::refunded_amounts::RefundedAmounts;
use super::sums::SumChecks;
use crate::json::{
    Field, Object, array, currency, integer, object, one_of, parsed, text, timestamp,
};

/// The complete state of an order at `updated_at`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Order {
    /// The order's identifier in the merchant's systems.
    #[schema(min_length = 1, max_length = 255, pattern = r"^(?!\.{1,2}$)")]
    pub identifier: String,
    /// The order's status in the merchant's systems.
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
    #[schema(max_length = 255)]
    pub concept: Option<String>,
    #[schema(max_length = 5000)]
    pub note: Option<String>,
    pub created_at: DateTime<Utc>,
    /// At most 24 hours in the future.
    pub updated_at: DateTime<Utc>,
    /// All lines together have at most 10,000 units.
    #[schema(min_items = 1, max_items = 1000)]
    pub items: Vec<OrderLine>,
    pub customer: Customer,
    pub shipping_address: Address,
    pub billing_address: Address,
    #[schema(max_items = 1000)]
    pub refunds: Vec<Refund>,
}

/// The status of an order. It is `Shipped` once the full order has shipped, also after a full refund.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum OrderStatus {
    Created,
    Shipped,
    #[serde(alias = "Canceled")]
    Cancelled,
}

impl OrderStatus {
    const TEXTS: [(&str, Self); 4] = [
        ("Created", Self::Created),
        ("Shipped", Self::Shipped),
        ("Cancelled", Self::Cancelled),
        ("Canceled", Self::Cancelled),
    ];
}

impl Order {
    pub(super) fn read(
        order: &Object<'_>,
        sums: &mut SumChecks,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let identifier = order.required("identifier", parsed(IDENTIFIER, order_identifier));
        let raw_status = order.optional("raw_status", text(OPTIONAL_TEXT));
        let status = order.required("status", one_of(&OrderStatus::TEXTS));
        let total = order.required("total_amount_cents", integer(AMOUNT));
        let product = order.required("product_amount_cents", integer(AMOUNT));
        let tax = order.required("tax_amount_cents", integer(AMOUNT));
        let discount = order.required("discount_amount_cents", integer(AMOUNT));
        let shipping = order.required("shipping_amount_cents", integer(AMOUNT));
        let shipping_tax = order.required("shipping_tax_amount_cents", integer(AMOUNT));
        let currency = order.required("currency", currency);
        let tags = order.optional("tags", array(0..=MAX_TAGS, text(OPTIONAL_TEXT)));
        let concept = order.optional("concept", text(OPTIONAL_TEXT));
        let note = order.optional("note", text(0..=MAX_NOTE));
        let created_at = order.required("created_at", timestamp);
        let updated_at = order.required("updated_at", timestamp);
        if updated_at.is_some_and(|updated_at| updated_at - now > MAX_AHEAD) {
            order.invalid("updated_at", "must be at most 24 hours in the future");
        }
        let (items, lines) = line::read_all(order, sums);
        let customer = customer::read_either(order);
        let shipping_address = order.required("shipping_address", object(Address::read));
        let billing_address = order.required("billing_address", object(Address::read));
        let transactions = order.required("transactions", array(0..=MAX_OPAQUE, ignore));
        let shipping_paid = shipping.zip(shipping_tax).map(|(shipping, tax)| shipping + tax);
        let mut seen = RefundIndex::new(RefundedAmounts::new(total, shipping_paid));
        let refund = object(|refund| Refund::read(refund, &lines, &mut seen, sums));
        let refunds = order.required("refunds", array(0..=MAX_REFUNDS, refund));
        let discounts = order.required("discounts", array(0..=MAX_OPAQUE, ignore));

        sums.compare(order, "product_amount_cents", product, lines.product_amount());
        sums.compare(order, "tax_amount_cents", tax, lines.tax_amount());
        warn_of_order_discount(order, sums, discount, &lines);
        if [discount, lines.discount_amount(), shipping, shipping_tax] == [Some(0); 4] {
            warn_of_total(order, sums, total, [product, tax], &lines);
        }

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

/// An order's identifier is a segment of URLs, from which URL libraries remove `.` and `..`, even if they are
/// percent-encoded.
fn order_identifier(text: &str) -> Result<String, &'static str> {
    if matches!(text, "." | "..") { Err("must not be . or ..") } else { Ok(text.to_owned()) }
}

/// Warns the sender of a discount that no line carries.
fn warn_of_order_discount(
    order: &Object<'_>,
    sums: &mut SumChecks,
    discount: Option<i64>,
    lines: &LineIndex,
) {
    let rest = discount.zip(lines.discount_amount()).map(|(order, lines)| order - lines);
    if let Some(rest) = rest.filter(|rest| *rest > 0) {
        let detail = format!("{rest} of the discount is on no line, and is spread over the lines");
        sums.warn(order, "discount_amount_cents", detail);
    }
}

/// Warns the sender of a total that is not product plus tax. The contract shows this composition only
/// for an order without shipping and discount. Product and tax are the amounts of the shipped units,
/// so the total is compared only when all units are shipped. A product or tax amount that differs
/// from the lines is reported alone.
fn warn_of_total(
    order: &Object<'_>,
    sums: &mut SumChecks,
    total: Option<i64>,
    parts: [Option<i64>; 2],
    lines: &LineIndex,
) {
    if !lines.is_shipped() || parts != [lines.product_amount(), lines.tax_amount()] {
        return;
    }
    let (Some(total), [Some(product), Some(tax)]) = (total, parts) else { return };
    let computed = product + tax;
    if total != computed {
        let detail = format!("says {total}, but product and tax make {computed}");
        sums.warn(order, "total_amount_cents", detail);
    }
}

/// Accepts any value. Transactions and discounts are counted, not read.
fn ignore(_: Field<'_>) -> Option<()> {
    Some(())
}

/// A schema that accepts the same codes as [`currency`].
fn currency_schema() -> ObjectBuilder {
    let letters = || 'A'..='Z';
    let pairs = letters().flat_map(|a| letters().map(move |b| (a, b)));
    let codes = pairs.flat_map(|(a, b)| letters().map(move |c| String::from_iter([a, b, c])));
    let codes = codes.filter(|code| Currency::from_code(code).is_some());
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("ISO 4217 code"))
        .enum_values(Some(codes))
}
