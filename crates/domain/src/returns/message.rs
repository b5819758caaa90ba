//! The RMA message: what the merchant is told of a return, whole, after every change.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::words::words;
use super::{
    ReceivingStatus, RefundFinancials, RefundType, ReturnConfirmed, ReturnMethod, RmaStatus,
    TrackingStatus,
};
use crate::event::Event as _;
use crate::exchange::{ExchangeFailed, ExchangePlaced};
use crate::schema::json_schema;
use crate::warehouse::UnitReceived;

/// A return as its merchant sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RmaMessage {
    pub rma_identifier: String,
    /// To be read only by merchants for whom we receive.
    pub status: RmaStatus,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// One for each returned unit.
    #[schema(min_items = 1)]
    pub items: Vec<RmaItem>,
    pub return_method: ReturnMethod,
    #[schema(minimum = 0)]
    pub return_shipping_cost_cents: i64,
    /// Whether refunds go to a gift card and not to the original payment method.
    pub gift_refund_only: bool,
    /// There only when `gift_refund_only` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub giftee_email: Option<String>,
}

/// One returned unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RmaItem {
    /// The identifier of the order's line.
    pub order_line_item_identifier: String,
    pub order_identifier: String,
    /// The order that was placed in exchange.
    #[schema(required = true)]
    pub exchange_order_identifier: Option<String>,
    /// For a unit of an exchange order: the order that it was placed against.
    #[schema(required = true)]
    pub original_order_identifier: Option<String>,
    /// The code of the reason the shopper gave.
    pub return_reason: String,
    /// Whether it is exchanged, or came from an exchange order.
    pub is_exchange: bool,
    pub sku: String,
    #[schema(required = true)]
    pub tracking_number: Option<String>,
    #[schema(required = true)]
    pub package_tracking_status: Option<TrackingStatus>,
    /// There only when we receive for the merchant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub receiving_status: Option<ReceivingStatus>,
    pub refund_financials: RefundFinancials,
    pub refund_type: RefundType,
}

/// What happened, as the header `X-Service-Event` says it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
pub enum ServiceEvent {
    #[serde(rename = "rma.created")]
    Created,
    /// A label, or news of the parcel that has no name of its own.
    #[serde(rename = "rma.tracking_updated")]
    TrackingUpdated,
    #[serde(rename = "rma.in_transit")]
    InTransit,
    /// Dropped off or picked up.
    #[serde(rename = "rma.dropped_off")]
    DroppedOff,
    /// What is known of the units' arrival changed.
    #[serde(rename = "rma.received")]
    Received,
    #[serde(rename = "rma.refunded")]
    Refunded,
    /// All or some units were canceled.
    #[serde(rename = "rma.canceled")]
    Canceled,
    #[serde(rename = "rma.exchange_placed")]
    ExchangePlaced,
    /// Units are refunded instead of exchanged.
    #[serde(rename = "rma.exchange_failed")]
    ExchangeFailed,
}

impl ServiceEvent {
    pub const ALL: [Self; 9] = [
        Self::Created,
        Self::TrackingUpdated,
        Self::InTransit,
        Self::DroppedOff,
        Self::Received,
        Self::Refunded,
        Self::Canceled,
        Self::ExchangePlaced,
        Self::ExchangeFailed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "rma.created",
            Self::TrackingUpdated => "rma.tracking_updated",
            Self::InTransit => "rma.in_transit",
            Self::DroppedOff => "rma.dropped_off",
            Self::Received => "rma.received",
            Self::Refunded => "rma.refunded",
            Self::Canceled => "rma.canceled",
            Self::ExchangePlaced => "rma.exchange_placed",
            Self::ExchangeFailed => "rma.exchange_failed",
        }
    }
}

/// What merchants receive.
pub fn message_schema() -> Value {
    let mut schema = json_schema::<RmaMessage>("RMA message");
    if let Value::Object(schema) = &mut schema {
        // A gift and its giftee come together or not at all.
        let giftee = json!({ "required": ["giftee_email"] });
        let is_gift = json!({ "properties": { "gift_refund_only": { "const": true } } });
        schema.insert("if".to_owned(), is_gift);
        schema.insert("else".to_owned(), json!({ "not": &giftee }));
        schema.insert("then".to_owned(), giftee);
    }
    schema
}

/// The events of returns and exchanges, by the name of their contract file.
pub fn event_schemas() -> [(&'static str, Value); 4] {
    [
        ("return-confirmed", json_schema::<ReturnConfirmed>(ReturnConfirmed::TYPE)),
        ("unit-received", json_schema::<UnitReceived>(UnitReceived::TYPE)),
        ("exchange-placed", json_schema::<ExchangePlaced>(ExchangePlaced::TYPE)),
        ("exchange-failed", json_schema::<ExchangeFailed>(ExchangeFailed::TYPE)),
    ]
}

words!(ServiceEvent);
