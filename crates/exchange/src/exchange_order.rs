//! A confirmed exchange and its exchange order, as the API shows it.

mod state;

use chrono::{DateTime, Utc};
use domain::exchange::{FailedItem, OrderAmounts, PlacedItem};
use domain::returns::UnitId;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use state::{CheckResult, State};

/// A confirmed exchange and, if there is one, its exchange order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExchangeOrderSummary)]
pub(crate) struct ExchangeOrderView {
    pub(crate) merchant: String,
    pub(crate) original_order_id: String,
    pub(crate) rma_identifier: String,
    pub(crate) state: State,
    /// Identifier of the new order at the merchant, or ours if that belongs to another order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exchange_order_identifier: Option<String>,
    /// Amounts from the merchant's response.
    pub(crate) amounts: OrderAmounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transaction_id: Option<Uuid>,
    /// The delivery to the merchant, sent as `webhook-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivery: Option<Uuid>,
    /// Exchanged units.
    pub(crate) items: Vec<PlacedItem>,
    /// Units that are refunded because their variant was out of stock or had another price.
    pub(crate) failed: Vec<FailedItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stock_check: Option<CheckResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price_check: Option<CheckResult>,
    /// Reason that the variants could not be requested from the merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) check_detail: Option<String>,
    /// Time at which the confirmation was received.
    pub(crate) received_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ordered_at: Option<DateTime<Utc>>,
    /// Time at which the merchant or an operator last decided the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) settled_at: Option<DateTime<Utc>>,
    /// Only if the exchange order was abandoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) abandonment: Option<Abandonment>,
}

/// The decision to abandon an exchange order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Abandonment {
    /// The operator: a client, or the e-mail address of a person.
    pub(crate) by: String,
    /// The reason.
    pub(crate) note: String,
}

impl ExchangeOrderView {
    /// Approximate length of the JSON.
    pub(crate) fn length(&self) -> usize {
        let length = |unit: &UnitId| {
            80 + unit.order_identifier.len() + unit.order_line_item_identifier.len()
        };
        let items = self.items.iter().map(|item| 70 + length(&item.unit));
        let failed = self.failed.iter().map(|item| 50 + item.detail.len() + length(&item.unit));
        let note = self.abandonment.as_ref().map_or(0, |it| 50 + it.by.len() + it.note.len());
        items.chain(failed).sum::<usize>() + note + 600
    }
}
