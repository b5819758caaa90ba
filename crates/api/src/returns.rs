//! Orders with their units, returns and discrepancies, as rma-engine shows them.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::order::{Customer, OrderStatus};
use domain::returns::{Discrepancy, RefundedQuantities, Rma, RmaStatus, WorkList};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::delivery::State;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OrderView {
    pub merchant: MerchantId,
    pub order_identifier: String,
    pub status: OrderStatus,
    #[schema(example = "USD")]
    pub currency: String,
    pub total_amount_cents: i64,
    pub customer: Customer,
    pub created_at: DateTime<Utc>,
    /// `updated_at` of the order snapshot.
    pub updated_at: DateTime<Utc>,
    /// Time of the first event about the order.
    pub stored_at: DateTime<Utc>,
    /// The original order of an exchange order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_order_identifier: Option<String>,
    pub lines: Vec<LineView>,
    /// Refunds that affect returns, including those that a newer snapshot omits.
    pub refunds: Vec<RefundView>,
    /// The newest 100 returns with units of the order, newest first. `GET /v1/returns` lists all.
    pub returns: Vec<ReturnSummary>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = OrderLineView)]
pub struct LineView {
    pub identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upc: Option<String>,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    pub quantity: i64,
    pub quantity_shipped: i64,
    pub quantity_canceled: i64,
    pub unit_price_amount_cents: i64,
    /// The units that have shipped.
    pub units: Vec<UnitView>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = OrderUnitView)]
pub struct UnitView {
    /// Number of the unit in its line, from 1.
    pub unit: i32,
    pub paid_amount_cents: i64,
    /// The return that the unit is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rma_identifier: Option<String>,
    /// The refund that covers the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund_identifier: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = OrderRefundView)]
pub struct RefundView {
    pub identifier: String,
    pub amount_cents: i64,
    /// Refunded units of each line.
    pub quantities: RefundedQuantities,
    /// The return that the merchant names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rma_identifier: Option<String>,
    /// Whether the named return does not exist. A discrepancy then waits for a person.
    pub is_unmatched: bool,
}

/// A return with its deadline.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Return {
    #[serde(flatten)]
    pub rma: Rma,
    /// The time until which the shopper should hand over the units. If no carrier has scanned a parcel by then, the units
    /// without a refund or an exchange order expire. Absent if there is nothing to hand over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_by: Option<DateTime<Utc>>,
}

/// A return in a list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ListedReturn {
    #[serde(flatten)]
    pub details: Return,
    /// The next step that the return needs.
    pub work_list: WorkList,
    /// The time of the last change, also of one that the merchant was not sent.
    pub changed_at: DateTime<Utc>,
    /// The last message to the merchant. Absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_message: Option<LastMessage>,
}

/// The last message to the merchant about a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastMessage {
    /// The id of the message, sent as `webhook-id`; `/v1/deliveries/{id}` shows its attempts.
    pub delivery: Uuid,
    /// Absent if the message is not kept any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub state: Option<State>,
}

/// The lengths of work lists, each counted up to 1,000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReturnCounts {
    pub to_review: i64,
    pub not_sent: i64,
    pub on_its_way: i64,
    pub to_refund: i64,
    pub done: i64,
    /// Returns with exchanged units that did not come back in time and were not waived.
    pub overdue: i64,
    /// Open discrepancies, also those of orders without a return.
    pub discrepancies: i64,
}

impl ReturnCounts {
    /// A count ends here.
    pub const MAX: i64 = 1_000;
}

/// The exchanged units of a merchant, by month.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GuaranteeReport {
    pub merchant: MerchantId,
    /// The months in which guarantees started, newest first, with a row for each currency.
    pub months: Vec<GuaranteeMonth>,
}

/// The guarantees that started in a month, with amounts in one currency.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct GuaranteeMonth {
    /// The month in UTC.
    #[schema(example = "2026-11")]
    pub month: String,
    #[schema(example = "USD")]
    pub currency: String,
    /// Units that no carrier and no warehouse has yet, before their deadline.
    pub open: GuaranteeSum,
    /// Units that a carrier or the warehouse has or had, or that a refund covers.
    pub met: GuaranteeSum,
    /// Units that did not come back in time. The merchant can charge the amount.
    pub due: GuaranteeSum,
    /// Units that the merchant or an operator waived.
    pub waived: GuaranteeSum,
}

impl GuaranteeMonth {
    /// A month without guarantees.
    pub fn new(month: String, currency: String) -> Self {
        let [open, met, due, waived] = [GuaranteeSum::default(); 4];
        Self { month, currency, open, met, due, waived }
    }
}

/// A number of units and the amount that was paid for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuaranteeSum {
    pub units: i64,
    pub amount_cents: i64,
}

/// A return in the view of an order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReturnSummary {
    pub rma_identifier: String,
    pub status: RmaStatus,
    pub created_at: DateTime<Utc>,
    /// Time of the last change that the merchant was sent.
    pub updated_at: DateTime<Utc>,
}

/// A recorded discrepancy.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RecordedDiscrepancy {
    pub merchant: MerchantId,
    pub position: i64,
    /// When the discrepancy was first recorded.
    pub at: DateTime<Utc>,
    /// Description of `detail` for people.
    pub message: String,
    pub detail: Discrepancy,
    /// Absent while the discrepancy is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<DiscrepancyResolution>,
}

/// The end of a discrepancy.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DiscrepancyResolution {
    pub at: DateTime<Utc>,
    /// The person, the client, or the type of another service's event.
    pub by: String,
    pub note: String,
    /// The return that the refund was assigned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rma_identifier: Option<String>,
}
