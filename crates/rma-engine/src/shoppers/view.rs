//! A return as its shopper sees it.

use api::returns::Return;
use chrono::{DateTime, Utc};
use domain::merchant::{Merchant, ReviewDecision};
use domain::returns::{
    ExchangeStatus, Label, RefundFinancials, RefundType, Resolution, ReturnMethod, ReturnReview,
    Rma, RmaStatus, RmaUnit, TrackingStatus, UnitId, Withdrawal,
};
use platform::shopper_proof::ProvenOrders;
use serde::Serialize;
use utoipa::ToSchema;

use super::labels::{ReturnLabels, ShopperLabel};

/// A return as the caller may see it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ReturnView {
    Full(Box<Return>),
    Shopper(Box<ShopperReturn>),
}

/// A return as its shopper sees it. A giftee sees no amounts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperReturn {
    rma_identifier: String,
    status: RmaStatus,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    return_method: ReturnMethod,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_shipping_cost_cents: Option<i64>,
    #[schema(example = "USD")]
    currency: String,
    is_gift: bool,
    /// The person who withdrew from the contract, for the acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    withdrawal: Option<Withdrawal>,
    /// Whether the whole return can be canceled now.
    is_cancelable: bool,
    /// The time until which the units should be handed over; absent if there is nothing to hand over.
    #[serde(skip_serializing_if = "Option::is_none")]
    send_by: Option<DateTime<Utc>>,
    /// Present only for a return that the merchant looks or looked at before it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    review: Option<ShopperReview>,
    /// In the order of the request, including canceled units.
    units: Vec<ShopperUnit>,
    /// The label requests of the parcels. Present only if one return is shown, and the merchant has a label provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<ShopperLabel>,
}

/// The review of a return as its shopper sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperReview {
    /// The rule of the merchant that asked for the review.
    rule: String,
    /// The time until which the merchant decides.
    due_at: DateTime<Utc>,
    /// Absent while the return waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    decision: Option<ReviewDecision>,
    /// The merchant's note about a declined return.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    note: Option<String>,
}

/// A unit of a return as its shopper sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperUnit {
    #[serde(flatten)]
    id: UnitId,
    sku: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
    return_reason: String,
    #[serde(flatten)]
    resolution: Resolution,
    refund_type: RefundType,
    /// The price in the shop, to compare a variant with. Absent for a gift.
    #[serde(skip_serializing_if = "Option::is_none")]
    product_amount_cents: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_financials: Option<RefundFinancials>,
    is_refunded: bool,
    /// Present only for a unit that was to be exchanged.
    exchange_status: Option<ExchangeStatus>,
    exchange_order_identifier: Option<String>,
    tracking_number: Option<String>,
    package_tracking_status: Option<TrackingStatus>,
    /// The newest label, if the carrier gave its URL and did not cancel it.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    canceled_at: Option<DateTime<Utc>>,
    /// Whether the unit was canceled because no carrier had scanned a parcel in time.
    is_expired: bool,
}

impl ReturnView {
    /// The view of a return of a merchant with these settings.
    pub(crate) fn new(
        rma: Rma,
        merchant: Option<&Merchant>,
        shopper: Option<&ProvenOrders>,
    ) -> Self {
        let send_by = merchant.and_then(|it| rma.send_by(&it.settings));
        if shopper.is_some() {
            Self::Shopper(Box::new(ShopperReturn::new(rma, send_by)))
        } else {
            Self::Full(Box::new(Return { rma, send_by }))
        }
    }

    /// The view with the labels of the return, if it is the shopper's.
    pub(crate) fn with_labels(mut self, labels: ReturnLabels) -> Self {
        if let Self::Shopper(shown) = &mut self {
            for unit in &mut shown.units {
                if unit.tracking_number.as_deref().is_some_and(|it| labels.is_unusable(it)) {
                    unit.label = None;
                }
            }
            shown.labels = labels.shown;
        }
        self
    }
}

/// Whether a shopper may see a return: a giftee sees gift returns, a buyer sees the others. The buyer does
/// not learn that the giftee returned something.
pub(crate) fn is_visible(rma: &Rma, shopper: &ProvenOrders) -> bool {
    let is_gift = rma.giftee_email.is_some();
    rma.units.iter().any(|unit| shopper.contains(&unit.id.order_identifier, is_gift))
}

impl ShopperReturn {
    fn new(rma: Rma, send_by: Option<DateTime<Utc>>) -> Self {
        let is_gift = rma.giftee_email.is_some();
        let canceled = rma.clone().cancel(None, rma.updated_at);
        Self {
            is_cancelable: canceled.is_ok_and(|change| !change.units.is_empty()),
            send_by,
            rma_identifier: rma.rma_identifier,
            status: rma.status,
            created_at: rma.created_at,
            updated_at: rma.updated_at,
            return_method: rma.return_method,
            return_shipping_cost_cents: (!is_gift).then_some(rma.return_shipping_cost_cents),
            currency: rma.currency,
            is_gift,
            withdrawal: rma.withdrawal,
            review: rma.review.map(ShopperReview::new),
            units: rma.units.into_iter().map(|unit| ShopperUnit::new(unit, is_gift)).collect(),
            labels: Vec::new(),
        }
    }
}

impl ShopperReview {
    fn new(ReturnReview { rule, due_at, decided, .. }: ReturnReview) -> Self {
        let decision = decided.as_ref().map(|it| it.decision);
        let is_declined = decision == Some(ReviewDecision::Decline);
        let note = decided.and_then(|it| it.note).filter(|_| is_declined);
        Self { rule, due_at, decision, note }
    }
}

impl ShopperUnit {
    fn new(unit: RmaUnit, is_gift: bool) -> Self {
        let refund_financials = (!is_gift).then(|| unit.refund_financials());
        let mut resolution = unit.resolution;
        if let Resolution::Exchange { variant } = &mut resolution
            && is_gift
        {
            variant.unit_price_amount_cents = None;
        }
        Self {
            id: unit.id,
            sku: unit.sku,
            title: unit.title,
            image_url: unit.image_url,
            return_reason: unit.return_reason,
            resolution,
            refund_type: unit.refund_type,
            product_amount_cents: (!is_gift).then_some(unit.amounts.product_amount_cents),
            refund_financials,
            is_refunded: unit.refunded_by.is_some(),
            exchange_status: unit.exchange_status,
            exchange_order_identifier: unit.exchange_order_identifier,
            tracking_number: unit.tracking_number,
            package_tracking_status: unit.package_tracking_status,
            label: unit.label,
            canceled_at: unit.canceled_at,
            is_expired: unit.is_expired,
        }
    }
}
