//! A unit of a return with its resolution and its progress.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::returns::{
    Amounts, Guarantee, Label, ReceivingStatus, RefundFinancials, RefundType, RequestedUnit,
    Resolution, RmaItem, TrackingStatus, UnitId,
};

/// A unit of a return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RmaUnit {
    #[serde(flatten)]
    pub id: UnitId,
    /// The SKU, or the UPC where the order has no SKU.
    pub sku: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upc: Option<String>,
    /// The product's title when the unit was returned.
    #[serde(default)]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    pub return_reason: String,
    /// The words of the shopper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 1000)]
    pub comment: Option<String>,
    #[serde(flatten)]
    pub resolution: Resolution,
    pub refund_type: RefundType,
    pub amounts: Amounts,
    /// The bonus for the chosen gift card or variant. Present only if a rule of the merchant gave it. A variant of the
    /// same price has none, and that for another variant is at most its price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bonus_amount_cents: Option<i64>,
    /// For a unit of an exchange order: the order that the exchange was placed against.
    pub original_order_identifier: Option<String>,
    /// Present only for a unit that was to be exchanged.
    pub exchange_status: Option<ExchangeStatus>,
    pub exchange_order_identifier: Option<String>,
    pub tracking_number: Option<String>,
    /// The latest time of a label that the carrier reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labeled_at: Option<DateTime<Utc>>,
    /// The newest label, if the carrier gave its URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    pub package_tracking_status: Option<TrackingStatus>,
    /// Whether the carrier reported a failure before it scanned the parcel.
    #[serde(default)]
    pub failed_before_scan: bool,
    /// Meaningful only with managed receiving.
    pub receiving_status: ReceivingStatus,
    pub is_damaged: bool,
    /// The refund that covers the unit.
    pub refunded_by: Option<String>,
    pub canceled_at: Option<DateTime<Utc>>,
    /// Whether the unit was canceled because no carrier had scanned a parcel in time. A late scan or receipt makes
    /// it part of the return again.
    #[serde(default)]
    #[schema(required = false, default = false)]
    pub is_expired: bool,
    /// Present only for an exchanged unit whose exchange order was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
}

crate::words! {
    /// The status of the exchange order for a unit.
    pub enum ExchangeStatus as "snake_case" {
        /// The exchange order is on its way to the merchant.
        Pending,
        /// The merchant did not accept the exchange order. An operator replays or abandons it.
        Undeliverable,
        Placed,
        /// The exchange failed. The unit is refunded instead.
        Failed,
    }
}

/// A unit as the order describes it at the time of the return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurchasedUnit {
    /// The SKU, or the UPC where the order has no SKU.
    pub sku: String,
    pub upc: Option<String>,
    pub title: String,
    pub image_url: Option<String>,
    /// The unit price on the order line.
    pub unit_price_amount_cents: i64,
    pub amounts: Amounts,
    /// For a unit of an exchange order: the order that the exchange was placed against.
    pub original_order_identifier: Option<String>,
}

impl RmaUnit {
    pub fn new(requested: &RequestedUnit, purchased: PurchasedUnit) -> Self {
        let refund_type = requested.resolution.refund_type(purchased.unit_price_amount_cents);
        let is_exchanged = refund_type != RefundType::Refund;
        Self {
            id: requested.id.clone(),
            sku: purchased.sku,
            upc: purchased.upc,
            title: purchased.title,
            image_url: purchased.image_url,
            return_reason: requested.return_reason.clone(),
            comment: requested.comment.clone(),
            resolution: requested.resolution.clone(),
            refund_type,
            amounts: purchased.amounts,
            bonus_amount_cents: None,
            original_order_identifier: purchased.original_order_identifier,
            exchange_status: is_exchanged.then_some(ExchangeStatus::Pending),
            exchange_order_identifier: None,
            tracking_number: None,
            labeled_at: None,
            label: None,
            package_tracking_status: None,
            failed_before_scan: false,
            receiving_status: ReceivingStatus::Pending,
            is_damaged: false,
            refunded_by: None,
            canceled_at: None,
            is_expired: false,
            guarantee: None,
        }
    }

    /// The unit with a bonus of this many per cent of the amount paid, rounded down, if the shopper gets one: an even
    /// exchange has none, and that for a variant is at most its price.
    #[must_use]
    pub fn with_bonus(self, percent: Option<i64>, is_gift: bool) -> Self {
        let bonus = |percent: i64| {
            let cents = i128::from(self.amounts.paid()) * i128::from(percent) / 100;
            let cents = i64::try_from(cents).unwrap_or(i64::MAX);
            match &self.resolution {
                Resolution::Refund => None,
                Resolution::GiftCard => Some(cents),
                Resolution::Exchange { variant } => match variant.unit_price_amount_cents {
                    // A giftee has seen no prices. The merchant's price decides whether the exchange is even.
                    None if is_gift => Some(cents),
                    Some(price) if self.refund_type == RefundType::UnevenExchange => {
                        Some(cents.min(price))
                    }
                    _ => None,
                },
            }
        };
        let bonus_amount_cents = percent.and_then(bonus);
        Self { bonus_amount_cents, ..self }
    }

    /// Whether the unit is exchanged for a gift card with the bonus of the merchant's settings, because no rule gives one.
    pub fn has_bonus_of_settings(&self) -> bool {
        self.resolution == Resolution::GiftCard && self.bonus_amount_cents.is_none()
    }

    pub fn refund_financials(&self) -> RefundFinancials {
        RefundFinancials::new(self.amounts, self.refund_type)
    }

    /// Whether the carrier has or had the parcel.
    pub(super) fn is_scanned(&self) -> bool {
        !self.failed_before_scan
            && self.package_tracking_status.is_some_and(|it| it >= TrackingStatus::Accepted)
    }

    /// Whether a carrier or the warehouse has or had the unit.
    pub fn has_arrived(&self) -> bool {
        self.is_scanned() || self.receiving_status == ReceivingStatus::Received
    }

    pub(super) fn item(&self, managed_receiving: bool, has_guarantees: bool) -> RmaItem {
        let guarantee = self.guarantee.as_ref().filter(|_| has_guarantees);
        RmaItem {
            order_line_item_identifier: self.id.order_line_item_identifier.clone(),
            order_identifier: self.id.order_identifier.clone(),
            exchange_order_identifier: self.exchange_order_identifier.clone(),
            original_order_identifier: self.original_order_identifier.clone(),
            return_reason: self.return_reason.clone(),
            is_exchange: self.refund_type != RefundType::Refund
                || self.original_order_identifier.is_some(),
            sku: self.sku.clone(),
            tracking_number: self.tracking_number.clone(),
            package_tracking_status: self.package_tracking_status,
            receiving_status: managed_receiving.then_some(self.receiving_status),
            refund_financials: self.refund_financials(),
            refund_type: self.refund_type,
            guarantee: guarantee.map(|it| it.state),
            guarantee_amount_cents: guarantee.map(|it| it.amount_cents),
        }
    }
}
