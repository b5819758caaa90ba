//! An order as support sees it: lines with their units, refunds and returns.

use chrono::{DateTime, Utc};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::{Customer, OrderLine, OrderStatus};
use domain::returns::RefundedQuantities;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::Error;
use crate::orders::units::OrderUnits;
use crate::shipped_units::{AppliedRefund, ShippedUnits, Unit, unit_id};
use crate::store::orders::Projected;
use crate::store::returns::{self, ReturnSummary};

/// Limit on the returns that are shown with an order.
const MAX_RETURNS: i64 = 100;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderView {
    merchant: MerchantId,
    order_identifier: String,
    status: OrderStatus,
    #[schema(example = "USD")]
    currency: String,
    total_amount_cents: i64,
    customer: Customer,
    created_at: DateTime<Utc>,
    /// `updated_at` of the order snapshot.
    updated_at: DateTime<Utc>,
    /// Time of the first event about the order.
    stored_at: DateTime<Utc>,
    /// The original order of an exchange order.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_order_identifier: Option<String>,
    lines: Vec<LineView>,
    /// Refunds that affect returns, including those that a newer snapshot omits.
    refunds: Vec<RefundView>,
    /// The newest 100 returns with units of the order, newest first. `GET /v1/returns` lists all.
    returns: Vec<ReturnSummary>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderLineView)]
pub(crate) struct LineView {
    identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sku: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upc: Option<String>,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
    quantity: i64,
    quantity_shipped: i64,
    quantity_canceled: i64,
    unit_price_amount_cents: i64,
    /// The units that have shipped.
    units: Vec<UnitView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderUnitView)]
pub(crate) struct UnitView {
    /// Number of the unit in its line, from 1.
    unit: i32,
    paid_amount_cents: i64,
    /// The return that the unit is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    rma_identifier: Option<String>,
    /// The refund that covers the unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_identifier: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderRefundView)]
pub(crate) struct RefundView {
    identifier: String,
    amount_cents: i64,
    /// Refunded units of each line.
    quantities: RefundedQuantities,
    /// The return that the merchant names.
    #[serde(skip_serializing_if = "Option::is_none")]
    rma_identifier: Option<String>,
    /// Whether the named return does not exist. A discrepancy then waits for a person.
    is_unmatched: bool,
}

impl OrderView {
    pub(crate) async fn load(
        conn: &mut AsyncPgConnection,
        merchant: &MerchantId,
        order_units: &OrderUnits,
        identifier: &str,
    ) -> Result<Self, Error> {
        let no_order = || Error::NoOrder(identifier.to_owned());
        let projected = order_units.orders.get(identifier).ok_or_else(no_order)?;
        let Projected { order, shipped_units, .. } = projected;
        Ok(Self {
            merchant: merchant.clone(),
            order_identifier: order.identifier.clone(),
            status: order.status,
            currency: order.currency.code().to_owned(),
            total_amount_cents: order.total_amount_cents,
            customer: order.customer.clone(),
            created_at: order.created_at,
            updated_at: order.updated_at,
            stored_at: projected.stored_at,
            original_order_identifier: projected.original_order_identifier.clone(),
            lines: order.items.iter().map(|line| show_line(order_units, projected, line)).collect(),
            refunds: shipped_units.refunds().iter().map(show_refund).collect(),
            returns: returns::of_order(conn, merchant, identifier, MAX_RETURNS).await?,
        })
    }
}

fn show_line(order_units: &OrderUnits, projected: &Projected, line: &OrderLine) -> LineView {
    let Projected { order, shipped_units, .. } = projected;
    let show_unit = |unit: &Unit| {
        let id = unit_id(&order.identifier, &line.identifier, unit.unit);
        UnitView {
            unit: unit.unit,
            paid_amount_cents: unit.amounts.paid(),
            rma_identifier: order_units.return_of(&id).map(str::to_owned),
            refund_identifier: refund_of(shipped_units, unit).map(str::to_owned),
        }
    };
    LineView {
        identifier: line.identifier.clone(),
        sku: line.sku.clone(),
        upc: line.upc.clone(),
        title: line.title.clone(),
        image_url: line.image_url.clone(),
        quantity: line.quantity,
        quantity_shipped: line.quantity_shipped,
        quantity_canceled: line.quantity_canceled,
        unit_price_amount_cents: line.unit_price_amount_cents,
        units: shipped_units.units(&line.identifier).iter().map(show_unit).collect(),
    }
}

fn refund_of<'a>(shipped_units: &'a ShippedUnits, unit: &Unit) -> Option<&'a str> {
    Some(shipped_units.refunds().get(unit.refund?)?.identifier.as_str())
}

fn show_refund(refund: &AppliedRefund) -> RefundView {
    RefundView {
        identifier: refund.identifier.clone(),
        amount_cents: refund.amount_cents,
        quantities: refund.quantities.clone(),
        rma_identifier: refund.rma_identifier.clone(),
        is_unmatched: refund.is_unmatched,
    }
}
