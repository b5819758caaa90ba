//! The cancellation or rejection of a whole drop shipment.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::address::OrderAddress;
use super::limits::{MAX_ITEMS, QUANTITY};
use crate::json::{
    Object, array, boolean, integer, object, parsed, read_fields, text, timestamp, variant,
};
use crate::warehouse::identifier::{Identifier, identifier};
use crate::warehouse::limits::{AMOUNT, MAX_NOTE, OPTIONAL_TEXT};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropShipmentCancellation {
    pub order: CancelledOrder,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledOrder {
    pub id: Identifier,
    /// The merchant's identifier of the order.
    pub client_identifier: Identifier,
    pub billing_address: Option<OrderAddress>,
    pub shipping_address: Option<OrderAddress>,
    #[schema(max_length = 255)]
    pub brand: Option<String>,
    #[schema(max_length = 255)]
    pub shipping_method: Option<String>,
    pub status: CancelledStatus,
    #[serde(flatten)]
    pub amounts: OrderAmounts,
    #[schema(max_length = 5000)]
    pub comments: Option<String>,
    pub expected_delivery_date: Option<NaiveDate>,
    pub signature_required: Option<bool>,
    pub packing_slip_identifier: Option<Identifier>,
    #[schema(max_length = 255)]
    pub reject_reason: Option<String>,
    #[schema(min_items = 1, max_items = 1000)]
    pub order_items: Vec<CancelledItem>,
    pub created_at: Option<DateTime<Utc>>,
    pub updated_at: Option<DateTime<Utc>>,
}

/// The status of an order that the warehouse does not ship.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelledStatus {
    Cancelled,
    /// The warehouse rejected the order, for example because the inventory was not found.
    Rejected,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderAmounts {
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub price_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub tax_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub processing_fee_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_cost_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_tax_cents: Option<i64>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledItem {
    pub id: Identifier,
    pub client_identifier: Option<Identifier>,
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[schema(max_length = 255)]
    pub brand: Option<String>,
    #[schema(max_length = 255)]
    pub condition: Option<String>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub quantity: i64,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub price_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub tax_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_cost_cents: Option<i64>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_tax_cents: Option<i64>,
    #[schema(max_length = 255)]
    pub status: Option<String>,
    #[schema(max_length = 5000)]
    pub comments: Option<String>,
}

impl DropShipmentCancellation {
    pub(super) fn read(message: &Object<'_>) -> Option<Self> {
        Some(Self { order: message.required("order", object(CancelledOrder::read))? })
    }
}

impl CancelledOrder {
    fn read(order: &Object<'_>) -> Option<Self> {
        let items = array(1..=MAX_ITEMS, object(CancelledItem::read));
        read_fields!(Self {
            id: order.required("id", identifier),
            client_identifier: order.required("client_identifier", identifier),
            billing_address: order.optional("billing_address", object(OrderAddress::read)),
            shipping_address: order.optional("shipping_address", object(OrderAddress::read)),
            brand: order.optional("brand", text(OPTIONAL_TEXT)),
            shipping_method: order.optional("shipping_method", text(OPTIONAL_TEXT)),
            status: order.required("status", variant),
            amounts: OrderAmounts::read(order),
            comments: order.optional("comments", text(0..=MAX_NOTE)),
            expected_delivery_date: order.optional("expected_delivery_date", parsed(10..=10, date)),
            signature_required: order.optional("signature_required", boolean),
            packing_slip_identifier: order.optional("packing_slip_identifier", identifier),
            reject_reason: order.optional("reject_reason", text(OPTIONAL_TEXT)),
            order_items: order.required("order_items", items),
            created_at: order.optional("created_at", timestamp),
            updated_at: order.optional("updated_at", timestamp),
        })
    }
}

impl OrderAmounts {
    fn read(order: &Object<'_>) -> Option<Self> {
        let amount = |key| order.optional(key, integer(AMOUNT));
        read_fields!(Self {
            price_cents: amount("price_cents"),
            tax_cents: amount("tax_cents"),
            processing_fee_cents: amount("processing_fee_cents"),
            shipping_cost_cents: amount("shipping_cost_cents"),
            shipping_tax_cents: amount("shipping_tax_cents"),
        })
    }
}

impl CancelledItem {
    fn read(item: &Object<'_>) -> Option<Self> {
        let optional_text = |key| item.optional(key, text(OPTIONAL_TEXT));
        let amount = |key| item.optional(key, integer(AMOUNT));
        read_fields!(Self {
            id: item.required("id", identifier),
            client_identifier: item.optional("client_identifier", identifier),
            sku: optional_text("sku"),
            brand: optional_text("brand"),
            condition: optional_text("condition"),
            quantity: item.required("quantity", integer(QUANTITY)),
            price_cents: amount("price_cents"),
            tax_cents: amount("tax_cents"),
            shipping_cost_cents: amount("shipping_cost_cents"),
            shipping_tax_cents: amount("shipping_tax_cents"),
            status: optional_text("status"),
            comments: item.optional("comments", text(0..=MAX_NOTE)),
        })
    }
}

fn date(text: &str) -> Result<NaiveDate, &'static str> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .map_err(|_invalid| "must be a date, like 2026-03-01")
}
