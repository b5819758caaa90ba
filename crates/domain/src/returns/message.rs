//! The RMA message: the complete state of a return, sent to the merchant after every change and
//! after every refund.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::message_kind::MessageVersion;

use super::{
    GuaranteeState, ReceivingStatus, RefundFinancials, RefundType, ReturnMethod, RmaStatus,
    TrackingStatus,
};

crate::words! {
    /// The status of a return in its messages.
    pub enum MessageStatus as "SCREAMING_SNAKE_CASE" {
        Created,
        /// Receiving was closed before every unit was refunded.
        PartialRefund,
        /// Every unit is refunded.
        Refunded,
        /// The return was canceled before any unit came back.
        Canceled,
    }
}

impl From<RmaStatus> for MessageStatus {
    /// No message is sent about a return that waits for review or was declined. Its message would be the first or the last
    /// one that it would have without a review.
    fn from(status: RmaStatus) -> Self {
        match status {
            RmaStatus::Requested | RmaStatus::Created => Self::Created,
            RmaStatus::PartialRefund => Self::PartialRefund,
            RmaStatus::Refunded => Self::Refunded,
            RmaStatus::Canceled | RmaStatus::Declined => Self::Canceled,
        }
    }
}

/// The first version of the message with the guarantees of exchanged units.
pub(crate) const GUARANTEES_SINCE: MessageVersion = MessageVersion(4);

/// A return as its merchant receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RmaMessage {
    pub rma_identifier: String,
    /// Meaningful only for merchants with managed receiving.
    pub status: MessageStatus,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// One item per returned unit.
    #[schema(min_items = 1)]
    pub items: Vec<RmaItem>,
    pub return_method: ReturnMethod,
    #[schema(minimum = 0)]
    pub return_shipping_cost_cents: i64,
    /// Whether refunds go to a gift card and not to the original payment method.
    pub gift_refund_only: bool,
    /// Present only when `gift_refund_only` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub giftee_email: Option<String>,
}

/// One returned unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RmaItem {
    /// The identifier of the order line.
    pub order_line_item_identifier: String,
    pub order_identifier: String,
    /// The order that was placed in exchange for the unit.
    #[schema(required = true)]
    pub exchange_order_identifier: Option<String>,
    /// For a unit of an exchange order: the order that the exchange was placed against.
    #[schema(required = true)]
    pub original_order_identifier: Option<String>,
    /// The code of the shopper's reason.
    pub return_reason: String,
    /// Whether the unit is exchanged or came from an exchange order.
    pub is_exchange: bool,
    pub sku: String,
    #[schema(required = true)]
    pub tracking_number: Option<String>,
    #[schema(required = true)]
    pub package_tracking_status: Option<TrackingStatus>,
    /// Present only with managed receiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub receiving_status: Option<ReceivingStatus>,
    pub refund_financials: RefundFinancials,
    pub refund_type: RefundType,
    /// From version 4 on, and present only for an exchanged unit whose exchange order was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub guarantee: Option<GuaranteeState>,
    /// Present with `guarantee`: the amount that was paid for the unit. The merchant can charge it when the guarantee is
    /// `due`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub guarantee_amount_cents: Option<i64>,
}

/// The change that a message reports, in its header `X-Service-Event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", prefix = "rma.")]
pub enum ServiceEvent {
    Created,
    /// A label, or a tracking event without an event of its own.
    TrackingUpdated,
    InTransit,
    /// The parcel was dropped off or picked up.
    DroppedOff,
    /// The receiving status of units changed.
    Received,
    /// A refund was recorded, and some units still await theirs.
    PartiallyRefunded,
    /// A refund was recorded, and all units are refunded.
    Refunded,
    /// Some or all units were canceled.
    Canceled,
    /// Some or all units were canceled, because no carrier had scanned a parcel in time.
    Expired,
    ExchangePlaced,
    /// Units are refunded instead of exchanged.
    ExchangeFailed,
    /// Exchanged units did not come back in time.
    ExchangeUnreturned,
    /// The merchant does without exchanged units that have not come back.
    GuaranteeWaived,
}

impl ServiceEvent {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
