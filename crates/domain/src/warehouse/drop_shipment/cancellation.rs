//! A drop shipment was called off as a whole.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::identifier::{Identifier, identifier};
use super::super::{AMOUNT, MAX_NOTE, WORD};
use super::address::OrderAddress;
use super::{MAX_ITEMS, QUANTITY};
use crate::json::{Object, array, boolean, integer, object, one_of, parsed, text, timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DropShipmentCancellation {
    pub order: CancelledOrder,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledOrder {
    pub id: Identifier,
    /// The merchant's identifier of the order.
    pub client_identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billing_address: Option<OrderAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipping_address: Option<OrderAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub brand: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub shipping_method: Option<String>,
    pub status: CancelledStatus,
    #[serde(flatten)]
    pub amounts: OrderAmounts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5000)]
    pub comments: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_delivery_date: Option<NaiveDate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature_required: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing_slip_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub reject_reason: Option<String>,
    #[schema(min_items = 1, max_items = 1000)]
    pub order_items: Vec<CancelledItem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

/// The one status a whole cancellation can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelledStatus {
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderAmounts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub price_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub tax_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub processing_fee_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_cost_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_tax_cents: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledItem {
    pub id: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_identifier: Option<Identifier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub brand: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub condition: Option<String>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub quantity: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub price_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub tax_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_cost_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub shipping_tax_cents: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
        let id = order.required("id", identifier);
        let client_identifier = order.required("client_identifier", identifier);
        let billing_address = order.optional("billing_address", object(OrderAddress::read));
        let shipping_address = order.optional("shipping_address", object(OrderAddress::read));
        let brand = order.optional("brand", text(WORD));
        let shipping_method = order.optional("shipping_method", text(WORD));
        let words = [("cancelled", CancelledStatus::Cancelled)];
        let status = order.required("status", one_of(&words));
        let amounts = OrderAmounts::read(order);
        let comments = order.optional("comments", text(0..=MAX_NOTE));
        let expected = order.optional("expected_delivery_date", parsed(10..=10, date));
        let signature_required = order.optional("signature_required", boolean);
        let slip = order.optional("packing_slip_identifier", identifier);
        let reject_reason = order.optional("reject_reason", text(WORD));
        let items = array(1..=MAX_ITEMS, object(CancelledItem::read));
        let order_items = order.required("order_items", items);
        let created_at = order.optional("created_at", timestamp);
        let updated_at = order.optional("updated_at", timestamp);
        Some(Self {
            id: id?,
            client_identifier: client_identifier?,
            billing_address: billing_address?,
            shipping_address: shipping_address?,
            brand: brand?,
            shipping_method: shipping_method?,
            status: status?,
            amounts: amounts?,
            comments: comments?,
            expected_delivery_date: expected?,
            signature_required: signature_required?,
            packing_slip_identifier: slip?,
            reject_reason: reject_reason?,
            order_items: order_items?,
            created_at: created_at?,
            updated_at: updated_at?,
        })
    }
}

impl OrderAmounts {
    fn read(order: &Object<'_>) -> Option<Self> {
        let amount = |key| order.optional(key, integer(AMOUNT));
        let (price, tax) = (amount("price_cents"), amount("tax_cents"));
        let fee = amount("processing_fee_cents");
        let (shipping, shipping_tax) =
            (amount("shipping_cost_cents"), amount("shipping_tax_cents"));
        Some(Self {
            price_cents: price?,
            tax_cents: tax?,
            processing_fee_cents: fee?,
            shipping_cost_cents: shipping?,
            shipping_tax_cents: shipping_tax?,
        })
    }
}

impl CancelledItem {
    fn read(item: &Object<'_>) -> Option<Self> {
        let word = |key| item.optional(key, text(WORD));
        let amount = |key| item.optional(key, integer(AMOUNT));
        let id = item.required("id", identifier);
        let client_identifier = item.optional("client_identifier", identifier);
        let (sku, brand, condition) = (word("sku"), word("brand"), word("condition"));
        let quantity = item.required("quantity", integer(QUANTITY));
        let (price, tax) = (amount("price_cents"), amount("tax_cents"));
        let (shipping, shipping_tax) =
            (amount("shipping_cost_cents"), amount("shipping_tax_cents"));
        let status = word("status");
        let comments = item.optional("comments", text(0..=MAX_NOTE));
        Some(Self {
            id: id?,
            client_identifier: client_identifier?,
            sku: sku?,
            brand: brand?,
            condition: condition?,
            quantity: quantity?,
            price_cents: price?,
            tax_cents: tax?,
            shipping_cost_cents: shipping?,
            shipping_tax_cents: shipping_tax?,
            status: status?,
            comments: comments?,
        })
    }
}

fn date(text: &str) -> Result<NaiveDate, &'static str> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .map_err(|_garbled| "must be a date, like 2026-03-01")
}
